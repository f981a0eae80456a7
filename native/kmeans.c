/* Weighted k-means on the grid (kmeans.py has the twin that explains it). */
#include "module.h"

#include "clones.h"
#include "exact_floats.h"
#include "nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Squared distances of all points to one of them; integers below 2^53, so exact in double in any order. */
CLONES static void squared_gaps(const double *columns, int64_t n, int64_t d, int64_t chosen, double *out)
{
    memset(out, 0, (size_t)n * sizeof(double));
    for (int64_t j = 0; j < d; j++) {
        const double *column = columns + j * n, c = column[chosen];
        for (int64_t i = 0; i < n; i++) out[i] += (column[i] - c) * (column[i] - c);
    }
}

typedef struct {
    int64_t n, d, k, trials, iterations;
    const int32_t *points;
    const double *columns, *weights;
    double tolerance;
    double *nearest_gap, *trial_gap, *best_gap, *cumulative, *sums, *mass;
    int32_t *labels, *previous;
} clustering;

static int64_t pick(const clustering *s, double u)
{
    const double target = u * s->cumulative[s->n - 1];
    int64_t low = 0, high = s->n - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (s->cumulative[middle] > target) high = middle; else low = middle + 1;
    }
    return low;
}

static double accumulate(const clustering *s, const double *gap)
{
    double total = 0;
    for (int64_t i = 0; i < s->n; i++) { total += s->weights[i] * gap[i]; s->cumulative[i] = total; }
    return total;
}

static double potential(const clustering *s, double *gap)
{
    double total = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->nearest_gap[i] < gap[i]) gap[i] = s->nearest_gap[i];
        total += s->weights[i] * gap[i];
    }
    return total;
}

static void seed_centers(clustering *s, const double *uniforms, int32_t *centers)
{
    const size_t bytes = (size_t)s->n * sizeof(double);
    double total = 0;
    for (int64_t i = 0; i < s->n; i++) { total += s->weights[i]; s->cumulative[i] = total; }
    int64_t chosen = pick(s, *uniforms++);
    squared_gaps(s->columns, s->n, s->d, chosen, s->nearest_gap);
    memcpy(centers, s->points + chosen * s->d, (size_t)s->d * sizeof(int32_t));
    for (int64_t c = 1; c < s->k; c++) {
        double best = INFINITY;
        accumulate(s, s->nearest_gap);
        for (int64_t t = 0; t < s->trials; t++) {
            const int64_t candidate = pick(s, *uniforms++);
            squared_gaps(s->columns, s->n, s->d, candidate, s->trial_gap);
            const double left = potential(s, s->trial_gap);
            if (left < best) {
                best = left;
                chosen = candidate;
                memcpy(s->best_gap, s->trial_gap, bytes);
            }
        }
        memcpy(s->nearest_gap, s->best_gap, bytes);
        memcpy(centers + c * s->d, s->points + chosen * s->d, (size_t)s->d * sizeof(int32_t));
    }
}

/* One Lloyd step: centers become the weighted means of their points, rounded to the grid; empty ones stay. */
static double move_centers(clustering *s, int32_t *centers)
{
    memset(s->sums, 0, (size_t)(s->k * s->d) * sizeof(double));
    memset(s->mass, 0, (size_t)s->k * sizeof(double));
    for (int64_t i = 0; i < s->n; i++) {
        double *sum = s->sums + s->labels[i] * s->d;
        const double w = s->weights[i];
        s->mass[s->labels[i]] += w;
        for (int64_t j = 0; j < s->d; j++) sum[j] += w * s->points[i * s->d + j];
    }
    double moved = 0;
    for (int64_t c = 0; c < s->k; c++) {
        if (!(s->mass[c] > 0)) continue;
        for (int64_t j = 0; j < s->d; j++) {
            const double mean = rint(s->sums[c * s->d + j] / s->mass[c]);
            const double gap = mean - centers[c * s->d + j];
            moved += gap * gap;
            centers[c * s->d + j] = (int32_t)mean;
        }
    }
    return moved;
}

static double loss_of(const clustering *s, const int32_t *centers)
{
    double loss = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t *x = s->points + i * s->d, *c = centers + s->labels[i] * s->d;
        double squared = 0;
        for (int64_t j = 0; j < s->d; j++) squared += ((double)x[j] - c[j]) * ((double)x[j] - c[j]);
        loss += s->weights[i] * squared;
    }
    return loss;
}

static int assign(clustering *s, const int32_t *centers)
{
    candidate_index *index = build_index(centers, s->k, s->d, 1, best_instruction_set());
    const int done = index && find_nearest(index, s->points, s->n, best_instruction_set(), s->labels);
    free_index(index);
    return done;
}

static int lloyd(clustering *s, int32_t *centers)
{
    for (int64_t step = 0; step < s->iterations; step++) {
        memcpy(s->previous, s->labels, (size_t)s->n * sizeof(int32_t));
        if (!assign(s, centers)) return 0;
        if (step && !memcmp(s->previous, s->labels, (size_t)s->n * sizeof(int32_t))) return 1;
        if (move_centers(s, centers) <= s->tolerance) break;
    }
    return assign(s, centers);
}

/* kmeans(points, columns, weights, uniforms, centers, d, trials, iterations, tolerance) -> loss of the best start */
PyObject *py_kmeans(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer points, columns, weights, uniforms, centers;
    Py_ssize_t d, trials, iterations;
    double tolerance, best = INFINITY;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*nnnd", &points, &columns, &weights, &uniforms, &centers, &d, &trials,
                          &iterations, &tolerance)) return NULL;
    const int64_t n = weights.len / 8, k = centers.len / (4 * d), draws = 1 + (k - 1) * trials;
    const int64_t starts = uniforms.len / (8 * draws);
    clustering s = {.n = n, .d = d, .k = k, .trials = trials, .iterations = iterations, .points = points.buf,
                    .columns = columns.buf, .weights = weights.buf, .tolerance = tolerance};
    int done = 0;
    Py_BEGIN_ALLOW_THREADS
    double *work = malloc((size_t)(4 * n + k * d + k) * sizeof(double));
    int32_t *whole = malloc((size_t)(2 * n + k * d) * sizeof(int32_t));
    if (work && whole) {
        s.nearest_gap = work; s.trial_gap = work + n; s.best_gap = work + 2 * n; s.cumulative = work + 3 * n;
        s.sums = work + 4 * n; s.mass = s.sums + k * d;
        s.labels = whole; s.previous = whole + n;
        int32_t *trial = whole + 2 * n;
        done = 1;
        for (int64_t start = 0; start < starts && done; start++) {
            seed_centers(&s, (const double *)uniforms.buf + start * draws, trial);
            done = lloyd(&s, trial);
            const double loss = loss_of(&s, trial);
            if (done && loss < best) { best = loss; memcpy(centers.buf, trial, (size_t)(k * d) * sizeof(int32_t)); }
        }
    }
    free(work); free(whole);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&points); PyBuffer_Release(&columns); PyBuffer_Release(&weights);
    PyBuffer_Release(&uniforms); PyBuffer_Release(&centers);
    if (!done) return PyErr_NoMemory();
    return PyFloat_FromDouble(best);
}

