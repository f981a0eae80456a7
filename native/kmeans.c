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

/* Squared distances of all points to one of them, and their running sums with weights. */
typedef struct { double *gap, *sum; } reach;

typedef struct {
    int64_t n, d, k, trials, iterations;
    const int32_t *points;
    const double *columns, *weights;
    double tolerance;
    reach nearest, *trial;             /* to the seeds so far; and with each seed on trial */
    double *sums, *mass;
    int32_t *labels, *previous;
    double *kept, **gaps_of, *scratch; /* the distances to points that were on trial before: many are again */
    int64_t room;
} clustering;

static int64_t pick(const clustering *s, double u)
{
    const double target = u * s->nearest.sum[s->n - 1];
    int64_t low = 0, high = s->n - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (s->nearest.sum[middle] > target) high = middle; else low = middle + 1;
    }
    return low;
}

/* The distances to a point: kept while there is room, else computed into `scratch`. */
static const double *gaps_to(clustering *s, int64_t point, double *scratch)
{
    if (s->gaps_of[point]) return s->gaps_of[point];
    double *out = scratch;
    if (s->room) {
        s->room--;
        out = s->gaps_of[point] = s->kept;
        s->kept += s->n;
    }
    squared_gaps(s->columns, s->n, s->d, point, out);
    return out;
}

/* Distances to the nearest of the seeds and one more, for each of ABREAST points on trial. Their running sums don't
 * wait for one another. */
#define ABREAST 4
static void try_seeds(const clustering *s, const double *const *gaps, const reach *out)
{
    double total[ABREAST] = {0};
    for (int64_t i = 0; i < s->n; i++) {
        const double most = s->nearest.gap[i], weight = s->weights[i];
        for (int t = 0; t < ABREAST; t++) {
            const double gap = most < gaps[t][i] ? most : gaps[t][i];
            total[t] += weight * gap;
            out[t].gap[i] = gap;
            out[t].sum[i] = total[t];
        }
    }
}

/* The best of the points on trial becomes a seed. */
static int64_t choose_seed(clustering *s, const double *uniforms)
{
    int64_t tried[ABREAST], chosen = 0, winner = 0;
    double best = INFINITY;
    for (int64_t first = 0; first < s->trials; first += ABREAST) {
        const double *gaps[ABREAST];
        reach out[ABREAST];
        for (int t = 0; t < ABREAST; t++) {
            const int64_t trial = first + t < s->trials ? first + t : s->trials - 1;
            tried[t] = pick(s, uniforms[trial]);
            gaps[t] = gaps_to(s, tried[t], s->scratch + t * s->n);
            out[t] = s->trial[first + t];
        }
        try_seeds(s, gaps, out);
        for (int t = 0; t < ABREAST && first + t < s->trials; t++) {
            if (out[t].sum[s->n - 1] >= best) continue;
            best = out[t].sum[s->n - 1];
            chosen = tried[t];
            winner = first + t;
        }
    }
    const reach swap = s->nearest; s->nearest = s->trial[winner]; s->trial[winner] = swap;
    return chosen;
}

static void seed_centers(clustering *s, const double *uniforms, int32_t *centers)
{
    double total = 0;
    for (int64_t i = 0; i < s->n; i++) { total += s->weights[i]; s->nearest.sum[i] = total; }
    int64_t chosen = pick(s, *uniforms++);
    const double *gaps = gaps_to(s, chosen, s->scratch);
    total = 0;
    for (int64_t i = 0; i < s->n; i++) {
        total += s->weights[i] * gaps[i];
        s->nearest.gap[i] = gaps[i];
        s->nearest.sum[i] = total;
    }
    memcpy(centers, s->points + chosen * s->d, (size_t)s->d * sizeof(int32_t));
    for (int64_t c = 1; c < s->k; c++, uniforms += s->trials) {
        chosen = choose_seed(s, uniforms);
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

#define KEPT (1 << 19) /* numbers: 4 MiB */

/* Cuts the room of `numbers` doubles and `whole` integers into what a run needs. */
static void share_out(clustering *s, double *numbers, int32_t *whole)
{
    const int64_t n = s->n, abreast = (s->trials + ABREAST - 1) / ABREAST * ABREAST;
    s->nearest = (reach){numbers, numbers + n};
    numbers += 2 * n;
    for (int64_t t = 0; t < abreast; t++, numbers += 2 * n) s->trial[t] = (reach){numbers, numbers + n};
    s->scratch = numbers; numbers += ABREAST * n;
    s->sums = numbers; numbers += s->k * s->d;
    s->mass = numbers; numbers += s->k;
    s->kept = numbers;
    s->labels = whole; s->previous = whole + n;
}

/* The best of several starts; each has its row of uniforms. Returns its loss, or -1 without memory. */
static double best_start(clustering *s, const double *uniforms, int64_t starts, int32_t *centers)
{
    const int64_t draws = 1 + (s->k - 1) * s->trials, abreast = s->trials + ABREAST;
    s->room = starts > 1 ? KEPT / s->n : 0;
    double *numbers = malloc((size_t)((2 + ABREAST + 2 * abreast + s->room) * s->n + s->k * (s->d + 1)) * sizeof(double));
    int32_t *whole = malloc((size_t)(2 * s->n + s->k * s->d) * sizeof(int32_t)), *trial = whole + 2 * s->n;
    s->trial = malloc((size_t)abreast * sizeof(reach));
    s->gaps_of = calloc((size_t)s->n, sizeof(double *));
    int done = numbers && whole && s->trial && s->gaps_of;
    double best = INFINITY;
    if (done) share_out(s, numbers, whole);
    for (int64_t start = 0; start < starts && done; start++) {
        seed_centers(s, uniforms + start * draws, trial);
        done = lloyd(s, trial);
        const double loss = done ? loss_of(s, trial) : INFINITY;
        if (loss < best) { best = loss; memcpy(centers, trial, (size_t)(s->k * s->d) * sizeof(int32_t)); }
    }
    free(numbers); free(whole); free(s->trial); free(s->gaps_of);
    return done ? best : -1;
}

/* kmeans(points, columns, weights, uniforms, centers, d, trials, iterations, tolerance) -> loss of the best start */
PyObject *py_kmeans(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer points, columns, weights, uniforms, centers;
    Py_ssize_t d, trials, iterations;
    double tolerance, best;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*nnnd", &points, &columns, &weights, &uniforms, &centers, &d, &trials,
                          &iterations, &tolerance)) return NULL;
    const int64_t n = weights.len / 8, k = centers.len / (4 * d);
    clustering s = {.n = n, .d = d, .k = k, .trials = trials, .iterations = iterations, .points = points.buf,
                    .columns = columns.buf, .weights = weights.buf, .tolerance = tolerance};
    Py_BEGIN_ALLOW_THREADS
    best = best_start(&s, uniforms.buf, uniforms.len / (8 * (1 + (k - 1) * trials)), centers.buf);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&points); PyBuffer_Release(&columns); PyBuffer_Release(&weights);
    PyBuffer_Release(&uniforms); PyBuffer_Release(&centers);
    if (best < 0) return PyErr_NoMemory();
    return PyFloat_FromDouble(best);
}
