/* Sphere packing: which of these candidates keep their distance (packing.py). */
#include "module.h"

#include "clones.h"
#include "exact_floats.h"

#define PACK_LANES 16
#define STRIDE 8 /* coordinates after which it is asked whether all points are far enough already */

typedef double eight __attribute__((vector_size(64), aligned(8)));
typedef int64_t eight_flags __attribute__((vector_size(64), aligned(8)));

/* Adds the squared gaps of some coordinates; returns whether a sum is below the limit. Sums only grow. */
static inline __attribute__((always_inline)) int add_gaps(const double *x, const eight *panel, int64_t d, double limit,
                                                          eight *squared)
{
    eight low = squared[0], high = squared[1];
    for (int64_t j = 0; j < d; j++) {
        const eight a = panel[2 * j] - x[j], b = panel[2 * j + 1] - x[j];
        low += a * a;
        high += b * b;
    }
    squared[0] = low;
    squared[1] = high;
    const eight_flags close = (low < limit) | (high < limit);
    return (close[0] | close[1] | close[2] | close[3] | close[4] | close[5] | close[6] | close[7]) != 0;
}

/* Is any of the accepted points (in panels of PACK_LANES, transposed) closer than the square root of limit? */
CLONES static int crowded(const double *x, const double *panels, int64_t count, int64_t d, double limit)
{
    for (int64_t start = 0; start < count; start += PACK_LANES) {
        eight squared[2] = {{0}};
        for (int64_t l = count - start; l < PACK_LANES; l++) squared[l / 8][l % 8] = limit; /* no points */
        const eight *panel = (const eight *)(panels + start * d);
        int close = 1;
        int64_t j = 0;
        for (; j + STRIDE <= d && close; j += STRIDE) close = add_gaps(x + j, panel + 2 * j, STRIDE, limit, squared);
        if (close && j < d) close = add_gaps(x + j, panel + 2 * j, d - j, limit, squared);
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

