/* Sphere packing: which of these candidates keep their distance (packing.py). */
#include "module.h"

#include "clones.h"
#include "exact_floats.h"

#define PACK_LANES 16

/* Is any of the accepted points (in panels of PACK_LANES, transposed) closer than the square root of limit? */
CLONES static int crowded(const double *x, const double *panels, int64_t count, int64_t d, double limit)
{
    for (int64_t start = 0; start < count; start += PACK_LANES) {
        const double *panel = panels + start * d;
        double squared[PACK_LANES] = {0};
        for (int64_t j = 0; j < d; j++)
            for (int l = 0; l < PACK_LANES; l++) {
                const double gap = panel[j * PACK_LANES + l] - x[j];
                squared[l] += gap * gap;
            }
        int close = 0;
        for (int l = 0; l < PACK_LANES; l++) close |= (start + l < count) & (squared[l] < limit);
        if (close) return 1;
    }
    return 0;
}

/* pack(candidates, panels, d, count, rejected, most, patience, limit) -> (count, rejected) */
PyObject *py_pack(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer candidates, panels;
    Py_ssize_t d, count, rejected, most, patience;
    double limit;
    if (!PyArg_ParseTuple(args, "y*w*nnnnnd", &candidates, &panels, &d, &count, &rejected, &most, &patience,
                          &limit)) return NULL;
    const double *x = candidates.buf;
    double *accepted = panels.buf;
    const int64_t n = candidates.len / (8 * d);
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < n && count < most && rejected < patience; i++, x += d) {
        if (crowded(x, accepted, count, d, limit)) { rejected++; continue; }
        double *slot = accepted + (count / PACK_LANES) * PACK_LANES * d + count % PACK_LANES;
        for (int64_t j = 0; j < d; j++) slot[j * PACK_LANES] = x[j];
        count++;
        rejected = 0;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&candidates); PyBuffer_Release(&panels);
    return Py_BuildValue("nn", (Py_ssize_t)count, (Py_ssize_t)rejected);
}

