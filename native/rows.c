/* What is done to every row before it is asked anything, in C: onto the grid, into a frame, through a projection.
 *
 * Each function has a NumPy twin (placing.py, grid.py) that gives the same integers. Products and sums in floating
 * point are rounded one by one, as NumPy does it: setup.py forbids the compiler to fuse them.
 */
#include "rows.h"

#include "clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 16                      /* rows at a time */

/* ---- place: rows of the user's units onto the grid ---- */

typedef struct {
    const char *start;
    int64_t stride;
    int single;     /* float32, not float64 */
} column;

static void load(const column *from, int64_t row, int64_t count, double *x)
{
    const char *at = from->start + row * from->stride;
    memset(x, 0, LANES * sizeof(double));
    for (int64_t l = 0; l < count; l++, at += from->stride) {
        if (from->single) { float v; memcpy(&v, at, sizeof v); x[l] = v; }
        else memcpy(x + l, at, sizeof(double));
    }
}

typedef struct {
    const double *lower, *upper, *center, *unit;
    double most;
    int64_t d;
} place_settings;

/* Up to LANES rows, which stand as columns in `tile` and end as integers in `whole`. A comparison with NaN is
 * false; the conditions are written so that NaN goes the way it goes in NumPy. */
CLONES static void place_tile(const place_settings *s, double *tile, int32_t *whole, int64_t *squared)
{
    double top[LANES] = {0};
    for (int64_t j = 0; j < s->d; j++) {
        const double lower = s->lower[j], upper = s->upper[j], center = s->center[j], unit = s->unit[j];
        const double most = s->most;
        double *x = tile + j * LANES;
        for (int l = 0; l < LANES; l++) {
            double v = x[l];
            v = v < lower ? lower : v;
            v = v > upper ? upper : v;
            v = (v - center) / unit;
            v = v < -most ? -most : v;
            v = v > most ? most : v;
            x[l] = v;
            const double size = fabs(v);
            top[l] = size <= top[l] ? top[l] : (top[l] == top[l] ? size : top[l]);
        }
    }
    int outside = 0;
    for (int l = 0; l < LANES; l++) {
        outside |= !(top[l] <= 1);
        top[l] = top[l] < 1 ? 1 : top[l];
    }
    if (outside)
        for (int64_t j = 0; j < s->d; j++)
            for (int l = 0; l < LANES; l++) tile[j * LANES + l] /= top[l];
    memset(squared, 0, LANES * sizeof(int64_t));
    for (int64_t j = 0; j < s->d; j++)
        for (int l = 0; l < LANES; l++) {
            double v = tile[j * LANES + l];
            v = v < 1 ? v : 1;
            v = v > -1 ? v : -1;
            const int32_t q = (int32_t)(v * GRID_UNIT);
            whole[j * LANES + l] = q;
            squared[l] += (int64_t)q * q;
        }
}

/* The rows of a tile, shortened where they are longer than one unit, into the table. */
static void store(const int32_t *whole, const int64_t *squared, int64_t d, int64_t count, int32_t *out)
{
    const int64_t longest = (int64_t)GRID_UNIT * GRID_UNIT;
    for (int64_t l = 0; l < count; l++, out += d) {
        if (squared[l] <= longest) {
            for (int64_t j = 0; j < d; j++) out[j] = whole[j * LANES + l];
            continue;
        }
        const double factor = GRID_UNIT / sqrt((double)squared[l]) * SAFELY_SHORTER;
        for (int64_t j = 0; j < d; j++) out[j] = (int32_t)(whole[j * LANES + l] * factor);
    }
}

static int place_all(const place_settings *s, const column *columns, int64_t n, int32_t *out)
{
    double *tile = malloc((size_t)(s->d * LANES) * (sizeof(double) + sizeof(int32_t)));
    if (!tile) return 0;
    int32_t *whole = (int32_t *)(tile + s->d * LANES);
    int64_t squared[LANES];
    for (int64_t row = 0; row < n; row += LANES) {
        const int64_t count = n - row < LANES ? n - row : LANES;
        for (int64_t j = 0; j < s->d; j++) load(columns + j, row, count, tile + j * LANES);
        place_tile(s, tile, whole, squared);
        store(whole, squared, s->d, count, out + row * s->d);
    }
    free(tile);
    return 1;
}

/* place(columns, lower, upper, center, unit, most, grid): fill grid. `columns` is a list of arrays of one dimension */
static PyObject *py_place(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *list;
    Py_buffer lower, upper, center, unit, grid;
    double most;
    if (!PyArg_ParseTuple(args, "Oy*y*y*y*dw*", &list, &lower, &upper, &center, &unit, &most, &grid)) return NULL;
    const int64_t d = PyList_Size(list);
    Py_buffer *views = calloc((size_t)(d > 0 ? d : 1), sizeof(Py_buffer));
    column *columns = calloc((size_t)(d > 0 ? d : 1), sizeof(column));
    int64_t held = 0, n = 0;
    int done = views && columns && d > 0;
    for (; done && held < d; held++) {
        PyObject *item = PyList_GetItem(list, held);
        if (!item || PyObject_GetBuffer(item, views + held, PyBUF_STRIDES) < 0) { done = 0; break; }
        if (held == 0) n = views[0].shape[0];
        columns[held] = (column){views[held].buf, views[held].strides[0], views[held].itemsize == 4};
    }
    if (done) {
        const place_settings s = {lower.buf, upper.buf, center.buf, unit.buf, most, d};
        Py_BEGIN_ALLOW_THREADS
        done = place_all(&s, columns, n, grid.buf);
        Py_END_ALLOW_THREADS
    }
    for (int64_t j = 0; j < held; j++) PyBuffer_Release(views + j);
    free(views); free(columns);
    PyBuffer_Release(&lower); PyBuffer_Release(&upper); PyBuffer_Release(&center); PyBuffer_Release(&unit);
    PyBuffer_Release(&grid);
    if (!done) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* ---- frame: rows as seen from a center, in units of a radius ---- */

CLONES static void frame_all(const int32_t *grid, const int32_t *center, int64_t n, int64_t d, double radius,
                             int32_t *out)
{
    for (int64_t i = 0; i < n; i++, grid += d, out += d) {
        int64_t squared = 0;
        for (int64_t j = 0; j < d; j++) {
            const int32_t gap = grid[j] - center[j];
            squared += (int64_t)gap * gap;
        }
        const double length = sqrt((double)squared);
        const double factor = GRID_UNIT / (length > radius ? length : radius) * SAFELY_SHORTER;
        for (int64_t j = 0; j < d; j++) out[j] = (int32_t)((grid[j] - center[j]) * factor);
    }
}

/* frame(grid, center, radius, out): fill out */
static PyObject *py_frame(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer grid, center, out;
    double radius;
    if (!PyArg_ParseTuple(args, "y*y*dw*", &grid, &center, &radius, &out)) return NULL;
    const int64_t d = center.len / 4;
    Py_BEGIN_ALLOW_THREADS
    frame_all(grid.buf, center.buf, d > 0 ? grid.len / (4 * d) : 0, d, radius, out.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&grid); PyBuffer_Release(&center); PyBuffer_Release(&out);
    Py_RETURN_NONE;
}

/* ---- project: rows times a matrix of integers; all partial sums are below 2^52, so exact in any order ---- */

CLONES static void project_some(const int32_t *grid, const double *matrix, int64_t n, int64_t d, int64_t p,
                                int64_t first, double scale, int32_t *out)
{
    const int64_t wide = p - first < LANES ? p - first : LANES;
    double panel[LANES], sum[LANES];
    for (int64_t i = 0; i < n; i++, grid += d, out += p) {
        memset(sum, 0, sizeof sum);
        for (int64_t j = 0; j < d; j++) {
            const double x = grid[j];
            const double *row = matrix + j * LANES;
            for (int l = 0; l < LANES; l++) sum[l] += x * row[l];
        }
        for (int l = 0; l < LANES; l++) panel[l] = sum[l] * scale;
        for (int64_t l = 0; l < wide; l++) out[first + l] = (int32_t)panel[l];
    }
}

static int project_all(const int32_t *grid, const double *matrix, int64_t n, int64_t d, int64_t p, double scale,
                       int32_t *out)
{
    double *panel = malloc((size_t)(d * LANES) * sizeof(double));
    if (!panel) return 0;
    for (int64_t first = 0; first < p; first += LANES) {
        for (int64_t j = 0; j < d; j++)
            for (int64_t l = 0; l < LANES; l++)
                panel[j * LANES + l] = first + l < p ? matrix[j * p + first + l] : 0;
        project_some(grid, panel, n, d, p, first, scale, out);
    }
    free(panel);
    return 1;
}

/* project(grid, matrix, d, scale, out): fill out; the matrix has a row for every column of the grid */
static PyObject *py_project(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer grid, matrix, out;
    Py_ssize_t d;
    double scale;
    if (!PyArg_ParseTuple(args, "y*y*ndw*", &grid, &matrix, &d, &scale, &out)) return NULL;
    const int64_t n = grid.len / (4 * d), p = matrix.len / (8 * d);
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = project_all(grid.buf, matrix.buf, n, d, p, scale, out.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&grid); PyBuffer_Release(&matrix); PyBuffer_Release(&out);
    if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"place", py_place, METH_VARARGS, "place(columns, lower, upper, center, unit, most, grid): fill grid"},
    {"frame", py_frame, METH_VARARGS, "frame(grid, center, radius, out): fill out"},
    {"project", py_project, METH_VARARGS, "project(grid, matrix, d, scale, out): fill out"},
    {"residuals", py_residuals, METH_VARARGS, "residuals(grid, labels, centers, radii, sums): add to sums"},
    {"squared_gaps", py_squared_gaps, METH_VARARGS, "squared_gaps(grid, labels, centers, d, out): fill out"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_rows", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__rows(void) { return PyModule_Create(&module); }
