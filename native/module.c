/* The C module: hot loops, each with a NumPy twin that gives the same numbers. */
#include "module.h"

#include "nearest.h"

#include <string.h>

#define INDEX "pemeans.index"

static void release_index(PyObject *capsule)
{
    free_index(PyCapsule_GetPointer(capsule, INDEX));
}

/* index(candidates, d, groups, instruction_set) -> capsule */
static PyObject *py_index(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer candidates;
    Py_ssize_t d, groups;
    int set;
    if (!PyArg_ParseTuple(args, "y*nni", &candidates, &d, &groups, &set)) return NULL;
    const int64_t m = d > 0 ? candidates.len / (4 * d) : 0;
    candidate_index *built = NULL;
    if (m > 0) {
        Py_BEGIN_ALLOW_THREADS
        built = build_index(candidates.buf, m, d, groups < m ? groups : m, set);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&candidates);
    return built ? PyCapsule_New(built, INDEX, release_index) : PyErr_NoMemory();
}

/* same(index, candidates, d): was it built of these? */
static PyObject *py_same(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule;
    Py_buffer candidates;
    Py_ssize_t d;
    if (!PyArg_ParseTuple(args, "Oy*n", &capsule, &candidates, &d)) return NULL;
    const candidate_index *index = PyCapsule_GetPointer(capsule, INDEX);
    const int same = index && index->d == d && candidates.len == 4 * index->m * d &&
                     !memcmp(index->candidates, candidates.buf, (size_t)candidates.len);
    PyBuffer_Release(&candidates);
    return index ? PyBool_FromLong(same) : NULL;
}

/* find(index, rows, labels, instruction_set): fill labels */
static PyObject *py_find(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *capsule;
    Py_buffer rows, labels;
    int set, done = 0;
    if (!PyArg_ParseTuple(args, "Oy*w*i", &capsule, &rows, &labels, &set)) return NULL;
    const candidate_index *index = PyCapsule_GetPointer(capsule, INDEX);
    if (index && rows.len == labels.len * index->d) {
        Py_BEGIN_ALLOW_THREADS
        done = find_nearest(index, rows.buf, labels.len / 4, set, labels.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&rows); PyBuffer_Release(&labels);
    if (!index) return NULL;
    if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* scan(candidates, d, rows, labels): fill labels, without an index */
static PyObject *py_scan(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer candidates, rows, labels;
    Py_ssize_t d;
    if (!PyArg_ParseTuple(args, "y*ny*w*", &candidates, &d, &rows, &labels)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    scan_exactly(rows.buf, labels.len / 4, candidates.buf, candidates.len / (4 * d), d, labels.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&candidates); PyBuffer_Release(&rows); PyBuffer_Release(&labels);
    Py_RETURN_NONE;
}

static PyObject *py_instruction_sets(PyObject *self, PyObject *args)
{
    (void)self; (void)args;
    return PyLong_FromLong(best_instruction_set());
}

static PyMethodDef methods[] = {
    {"index", py_index, METH_VARARGS, "index(candidates, d, groups, instruction_set): what find asks"},
    {"same", py_same, METH_VARARGS, "same(index, candidates, d): was it built of these candidates?"},
    {"find", py_find, METH_VARARGS, "find(index, rows, labels, instruction_set): fill labels"},
    {"scan", py_scan, METH_VARARGS, "scan(candidates, d, rows, labels): fill labels, one candidate after another"},
    {"instruction_set", py_instruction_sets, METH_NOARGS, "the best instruction set here, 0 for plain C"},
    {"pack", py_pack, METH_VARARGS, "pack(candidates, panels, d, count, rejected, most, patience, limit)"},
    {"kmeans", py_kmeans, METH_VARARGS,
     "kmeans(points, columns, weights, uniforms, centers, d, trials, iterations, tolerance): fill centers"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
