/* The hot loops in C. Everything here has a NumPy twin that gives the same numbers.
 *
 * nearest: for every row the candidate at the smallest Euclidean distance, exactly, on integer grids.
 * The score of candidate c for row x is 2 x.c - |c|^2, an exact integer; the largest wins, the lowest
 * index among equals. float32 scores screen the candidates first: their error has a proven bound, and only
 * the candidates within twice that bound of the best are scored exactly. So the answer never depends on
 * float arithmetic, on the batch, or on the instruction set.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const int32_t *rows, *candidates;
    int64_t n, m, d;
    int64_t width;      /* candidates in a panel */
    int64_t panels;
    float *panel;       /* [panels][d][width]: candidates, transposed, in float32 */
    float *bias;        /* [panels*width]: -|c|^2 / 2, -inf where there is no candidate */
    int64_t *squared;   /* [m]: |c|^2, exact */
    double longest;     /* the largest |c| */
} problem;

static int64_t exact_score(const int32_t *x, const int32_t *c, int64_t squared, int64_t d)
{
    int64_t dot = 0;
    for (int64_t j = 0; j < d; j++) dot += (int64_t)x[j] * c[j];
    return 2 * dot - squared;
}

/* Among the candidates whose screened score reaches the bar, the one that wins exactly. */
static int32_t settle(const problem *p, const int32_t *x, const float *score, float bar)
{
    int64_t best = INT64_MIN, winner = 0, first = -1, found = 0;
    for (int64_t start = 0; start < p->panels * p->width; start += 64) {
        int64_t stop = start + 64 < p->panels * p->width ? start + 64 : p->panels * p->width;
        int any = 0;
        for (int64_t i = start; i < stop; i++) any |= score[i] >= bar;
        if (!any) continue;
        for (int64_t i = start; i < stop; i++) {
            if (!(score[i] >= bar) || i >= p->m) continue;
            if (found++ == 0) { first = i; continue; }
            if (found == 2) {
                best = exact_score(x, p->candidates + first * p->d, p->squared[first], p->d);
                winner = first;
            }
            int64_t s = exact_score(x, p->candidates + i * p->d, p->squared[i], p->d);
            if (s > best) { best = s; winner = i; }
        }
    }
    return (int32_t)(found == 1 ? first : winner);
}

/* |float32 score - true score| <= this, with u = 2^-24: d products and d + 1 additions, each rounding by at
 * most u of a partial sum below |x| |c| + |c|^2 / 2, and the inputs rounded once. Doubled to be generous. */
static float error_bound(const problem *p, const int32_t *x)
{
    double norm = 0;
    for (int64_t j = 0; j < p->d; j++) norm += (double)x[j] * x[j];
    norm = sqrt(norm);
    return (float)(2.0 * (double)(p->d + 8) * 0x1p-24 * p->longest * (norm + p->longest));
}

/* One version of the screening loop an instruction set: ROWS rows against panels of 2 vectors of LANES. */
#define SCREEN(NAME, TARGET, LANES, ROWS)                                                                  \
    typedef float NAME##_vec __attribute__((vector_size(LANES * 4), aligned(4)));                          \
    TARGET static void NAME(const problem *p, int64_t from, int64_t to, float *score, int32_t *labels)     \
    {                                                                                                      \
        const int64_t d = p->d, w = 2 * LANES, stride = p->panels * w;                                     \
        for (int64_t row = from; row < to; row += ROWS) {                                                  \
            const int32_t *x[ROWS];                                                                        \
            for (int r = 0; r < ROWS; r++) x[r] = p->rows + (row + r < to ? row + r : to - 1) * d;         \
            for (int64_t q = 0; q < p->panels; q++) {                                                      \
                const float *panel = p->panel + q * d * w;                                                 \
                NAME##_vec low[ROWS], high[ROWS];                                                          \
                for (int r = 0; r < ROWS; r++) {                                                           \
                    low[r] = *(const NAME##_vec *)(p->bias + q * w);                                       \
                    high[r] = *(const NAME##_vec *)(p->bias + q * w + LANES);                              \
                }                                                                                          \
                for (int64_t j = 0; j < d; j++) {                                                          \
                    const NAME##_vec a = *(const NAME##_vec *)(panel + j * w);                             \
                    const NAME##_vec b = *(const NAME##_vec *)(panel + j * w + LANES);                     \
                    for (int r = 0; r < ROWS; r++) {                                                       \
                        const float v = (float)x[r][j];                                                    \
                        low[r] += v * a;                                                                   \
                        high[r] += v * b;                                                                  \
                    }                                                                                      \
                }                                                                                          \
                for (int r = 0; r < ROWS; r++) {                                                           \
                    *(NAME##_vec *)(score + r * stride + q * w) = low[r];                                  \
                    *(NAME##_vec *)(score + r * stride + q * w + LANES) = high[r];                         \
                }                                                                                          \
            }                                                                                              \
            for (int r = 0; r < ROWS && row + r < to; r++) {                                               \
                const float *s = score + r * stride;                                                       \
                float top[LANES];                                                                          \
                for (int l = 0; l < LANES; l++) top[l] = s[l];                                             \
                for (int64_t i = LANES; i < stride; i += LANES)                                            \
                    for (int l = 0; l < LANES; l++) top[l] = s[i + l] > top[l] ? s[i + l] : top[l];        \
                float best = top[0];                                                                       \
                for (int l = 1; l < LANES; l++) best = top[l] > best ? top[l] : best;                      \
                labels[row + r] = settle(p, x[r], s, best - 2 * error_bound(p, x[r]));                     \
            }                                                                                              \
        }                                                                                                  \
    }

#define NO_TARGET
SCREEN(screen_plain, NO_TARGET, 4, 4)
#if defined(__x86_64__)
SCREEN(screen_avx2, __attribute__((target("avx2,fma"))), 8, 6)
SCREEN(screen_avx512, __attribute__((target("avx512f"))), 16, 12)
#endif
#define MOST_ROWS 12

typedef void (*screen_function)(const problem *, int64_t, int64_t, float *, int32_t *);

static screen_function choose_screen(int64_t *width)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) { *width = 32; return screen_avx512; }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) { *width = 16; return screen_avx2; }
#endif
    *width = 8;
    return screen_plain;
}

static int prepare(problem *p)
{
    p->panels = (p->m + p->width - 1) / p->width;
    const int64_t slots = p->panels * p->width;
    p->panel = calloc((size_t)(slots * p->d), sizeof(float));
    p->bias = malloc((size_t)slots * sizeof(float));
    p->squared = malloc((size_t)p->m * sizeof(int64_t));
    if (!p->panel || !p->bias || !p->squared) return 0;
    p->longest = 0;
    for (int64_t i = 0; i < slots; i++) {
        if (i >= p->m) { p->bias[i] = -INFINITY; continue; }
        const int32_t *c = p->candidates + i * p->d;
        float *column = p->panel + (i / p->width) * p->d * p->width + i % p->width;
        int64_t squared = 0;
        for (int64_t j = 0; j < p->d; j++) {
            squared += (int64_t)c[j] * c[j];
            column[j * p->width] = (float)c[j];
        }
        p->squared[i] = squared;
        p->bias[i] = (float)(-0.5 * (double)squared);
        if (sqrt((double)squared) > p->longest) p->longest = sqrt((double)squared);
    }
    return 1;
}

static int nearest(const int32_t *rows, int64_t n, const int32_t *candidates, int64_t m, int64_t d,
                   int32_t *labels)
{
    problem p = {.rows = rows, .candidates = candidates, .n = n, .m = m, .d = d};
    const screen_function screen = choose_screen(&p.width);
    int done = 0;
    float *score = NULL;
    if (prepare(&p)) {
        score = malloc((size_t)(MOST_ROWS * p.panels * p.width) * sizeof(float));
        if (score) { screen(&p, 0, n, score, labels); done = 1; }
    }
    free(score); free(p.panel); free(p.bias); free(p.squared);
    return done;
}

static PyObject *py_nearest(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer rows, candidates, labels;
    Py_ssize_t d;
    if (!PyArg_ParseTuple(args, "y*y*w*n", &rows, &candidates, &labels, &d)) return NULL;
    const int64_t n = rows.len / (4 * d), m = candidates.len / (4 * d);
    int done = 0;
    if (labels.len == n * 4 && m > 0) {
        Py_BEGIN_ALLOW_THREADS
        done = nearest(rows.buf, n, candidates.buf, m, d, labels.buf);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&rows); PyBuffer_Release(&candidates); PyBuffer_Release(&labels);
    if (!done) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* From here on a product and a sum are rounded one by one, as NumPy does it, also where the machine could fuse
 * them: the same seed gives the same candidates everywhere. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

/* ---- sphere packing: which of these candidates keep their distance (populate.py) ---- */

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

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
static PyObject *py_pack(PyObject *self, PyObject *args)
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

/* ---- weighted k-means on the grid (kmeans.py has the twin that explains it) ---- */

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

static int lloyd(clustering *s, int32_t *centers)
{
    for (int64_t step = 0; step < s->iterations; step++) {
        memcpy(s->previous, s->labels, (size_t)s->n * sizeof(int32_t));
        if (!nearest(s->points, s->n, centers, s->k, s->d, s->labels)) return 0;
        if (step && !memcmp(s->previous, s->labels, (size_t)s->n * sizeof(int32_t))) return 1;
        if (move_centers(s, centers) <= s->tolerance) break;
    }
    return nearest(s->points, s->n, centers, s->k, s->d, s->labels);
}

/* kmeans(points, columns, weights, uniforms, centers, d, trials, iterations, tolerance) -> loss of the best start */
static PyObject *py_kmeans(PyObject *self, PyObject *args)
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

static PyMethodDef methods[] = {
    {"nearest", py_nearest, METH_VARARGS, "nearest(rows, candidates, labels, d): fill labels, all int32 in C order"},
    {"pack", py_pack, METH_VARARGS, "pack(candidates, panels, d, count, rejected, most, patience, limit)"},
    {"kmeans", py_kmeans, METH_VARARGS,
     "kmeans(points, columns, weights, uniforms, centers, d, trials, iterations, tolerance): fill centers"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
