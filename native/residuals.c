/* Rows as seen from their own centers: sums of shortened residuals, and squared distances.
 *
 * residuals.py has the NumPy twins. Products are rounded one by one, as in rows.c; sums are of integers.
 */
#include "rows.h"

#include "clones.h"

#include <math.h>

CLONES static int64_t squared_gap(const int32_t *x, const int32_t *c, int64_t d)
{
    int64_t squared = 0;
    for (int64_t j = 0; j < d; j++) {
        const int32_t gap = x[j] - c[j];
        squared += (int64_t)gap * gap;
    }
    return squared;
}

CLONES static void add_shortened(const int32_t *x, const int32_t *c, int64_t d, double factor, int64_t *sum)
{
    for (int64_t j = 0; j < d; j++) sum[j] += (int32_t)((x[j] - c[j]) * factor);
}

static void add_residuals(const int32_t *grid, const int32_t *labels, const int32_t *centers, const int64_t *radii,
                          int64_t n, int64_t d, int64_t *sums)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t *x = grid + i * d, *c = centers + labels[i] * d;
        const double length = sqrt((double)squared_gap(x, c, d)), radius = (double)radii[labels[i]];
        add_shortened(x, c, d, GRID_UNIT / (length > radius ? length : radius) * SAFELY_SHORTER, sums + labels[i] * d);
    }
}

/* residuals(grid, labels, centers, radii, sums): add to sums */
PyObject *py_residuals(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer grid, labels, centers, radii, sums;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*", &grid, &labels, &centers, &radii, &sums)) return NULL;
    const int64_t n = labels.len / 4, k = radii.len / 8;
    Py_BEGIN_ALLOW_THREADS
    add_residuals(grid.buf, labels.buf, centers.buf, radii.buf, n, k > 0 ? centers.len / (4 * k) : 0, sums.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&grid); PyBuffer_Release(&labels); PyBuffer_Release(&centers); PyBuffer_Release(&radii);
    PyBuffer_Release(&sums);
    Py_RETURN_NONE;
}

/* squared_gaps(grid, labels, centers, d, out): fill out */
PyObject *py_squared_gaps(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer grid, labels, centers, out;
    Py_ssize_t d;
    if (!PyArg_ParseTuple(args, "y*y*y*nw*", &grid, &labels, &centers, &d, &out)) return NULL;
    const int32_t *x = grid.buf, *label = labels.buf, *c = centers.buf;
    int64_t *squared = out.buf;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < out.len / 8; i++) squared[i] = squared_gap(x + i * d, c + label[i] * d, d);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&grid); PyBuffer_Release(&labels); PyBuffer_Release(&centers); PyBuffer_Release(&out);
    Py_RETURN_NONE;
}
