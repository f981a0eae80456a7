/* Builds the index of the candidates that nearest.h describes. Whatever it chooses, the answers are the same. */
#include "nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_PER_PIVOT 12
#define PIVOT_STEPS 2
#define FEW_MEMBERS 12 /* a shell has at least so many, if the group allows it */

void free_index(candidate_index *ix)
{
    if (!ix) return;
    free(ix->candidates); free(ix->squared); free(ix->member); free(ix->distance); free(ix->rounded);
    free(ix->pivots); free(ix->half); free(ix->gap); free(ix->closest); free(ix->radius);
    free(ix->first_shell); free(ix->shells); free(ix);
}

static int64_t squared_length(const int32_t *c, int64_t d)
{
    int64_t sum = 0;
    for (int64_t j = 0; j < d; j++) sum += (int64_t)c[j] * c[j];
    return sum;
}

static void set_pivot(candidate_index *ix, int64_t g, const double *place)
{
    double squared = 0;
    for (int64_t j = 0; j < ix->d; j++) {
        const double whole = rint(place[j]);
        ix->pivots[g * ix->d + j] = (float)whole;
        squared += whole * whole;
    }
    ix->half[g] = (float)(squared / 2);
}

static int64_t nearest_pivot(const candidate_index *ix, const int32_t *c)
{
    int64_t best = 0;
    float top = -INFINITY;
    for (int64_t g = 0; g < ix->groups; g++) {
        const float *p = ix->pivots + g * ix->d;
        float lane[8] = {0};
        int64_t j = 0;
        for (; j + 8 <= ix->d; j += 8)
            for (int l = 0; l < 8; l++) lane[l] += (float)c[j + l] * p[j + l];
        float score = -ix->half[g];
        for (; j < ix->d; j++) score += (float)c[j] * p[j];
        for (int l = 0; l < 8; l++) score += lane[l];
        if (score > top) { top = score; best = g; }
    }
    return best;
}

/* The i-th of a sample that is spread over all candidates, wherever they are in the population. */
static int64_t sampled(int64_t i, int64_t m)
{
    return (int64_t)(((uint64_t)i * 0x9E3779B97F4A7C15u >> 11) % (uint64_t)m);
}

/* A few Lloyd steps on a sample. */
static int choose_pivots(candidate_index *ix)
{
    const int64_t d = ix->d, groups = ix->groups, m = ix->m;
    const int64_t wanted = groups * SAMPLE_PER_PIVOT, sample = wanted < m ? wanted : m;
    double *sums = malloc((size_t)(groups * (d + 1)) * sizeof(double));
    if (!sums) return 0;
    for (int64_t g = 0; g < groups; g++) {
        const int32_t *c = ix->candidates + sampled(g + 1, m) * d;
        for (int64_t j = 0; j < d; j++) sums[j] = c[j];
        set_pivot(ix, g, sums);
    }
    for (int step = 0; step < PIVOT_STEPS; step++) {
        memset(sums, 0, (size_t)(groups * (d + 1)) * sizeof(double));
        for (int64_t i = 0; i < sample; i++) {
            const int32_t *c = ix->candidates + (sample == m ? i : sampled(i + 1, m)) * d;
            double *sum = sums + nearest_pivot(ix, c) * (d + 1);
            for (int64_t j = 0; j < d; j++) sum[j] += c[j];
            sum[d]++;
        }
        for (int64_t g = 0; g < groups; g++) {
            double *sum = sums + g * (d + 1);
            if (!(sum[d] > 0)) continue;
            for (int64_t j = 0; j < d; j++) sum[j] /= sum[d];
            set_pivot(ix, g, sum);
        }
    }
    free(sums);
    return 1;
}

typedef struct { float key; int32_t value; } sortable;

static int by_key(const void *a, const void *b)
{
    const float x = ((const sortable *)a)->key, y = ((const sortable *)b)->key;
    return x < y ? -1 : x > y;
}

/* Members of each group, by their distance to the pivot. */
static int sort_members(candidate_index *ix, int32_t *start)
{
    sortable *sorted = malloc((size_t)ix->m * sizeof(sortable));
    int32_t *home = malloc((size_t)ix->m * sizeof(int32_t));
    if (!sorted || !home) { free(sorted); free(home); return 0; }
    memset(start, 0, (size_t)(ix->groups + 1) * sizeof(int32_t));
    for (int64_t i = 0; i < ix->m; i++) {
        home[i] = (int32_t)nearest_pivot(ix, ix->candidates + i * ix->d);
        start[home[i] + 1]++;
    }
    for (int64_t g = 0; g < ix->groups; g++) start[g + 1] += start[g];
    for (int64_t i = ix->m; i-- > 0;) {
        const int32_t *c = ix->candidates + i * ix->d;
        const float *p = ix->pivots + home[i] * ix->d;
        double squared = 0;
        for (int64_t j = 0; j < ix->d; j++) squared += (c[j] - (double)p[j]) * (c[j] - (double)p[j]);
        sorted[--start[home[i] + 1]] = (sortable){(float)sqrt(squared), (int32_t)i};
    }
    for (int64_t g = 0; g < ix->groups; g++) start[g] = start[g + 1];
    start[ix->groups] = (int32_t)ix->m;
    for (int64_t g = 0; g < ix->groups; g++)
        qsort(sorted + start[g], (size_t)(start[g + 1] - start[g]), sizeof(sortable), by_key);
    for (int64_t i = 0; i < ix->m; i++) { ix->member[i] = sorted[i].value; ix->distance[i] = sorted[i].key; }
    free(sorted); free(home);
    return 1;
}

/* Shells: members whose distances differ by no more than a factor of two, unless they would be too few. */
static void cut_shells(candidate_index *ix, const int32_t *start)
{
    int32_t made = 0;
    for (int64_t g = 0; g < ix->groups; g++) {
        ix->first_shell[g] = made;
        ix->radius[g] = start[g + 1] > start[g] ? ix->distance[start[g + 1] - 1] : 0;
        if (ix->radius[g] > ix->farthest) ix->farthest = ix->radius[g];
        for (int32_t i = start[g]; i < start[g + 1]; made++) {
            int32_t count = 1;
            while (i + count < start[g + 1] && count < SHELL_MEMBERS &&
                   (count < FEW_MEMBERS || ix->distance[i + count] <= 2 * ix->distance[i])) count++;
            const float outer = ix->distance[i + count - 1];
            ix->shells[made] = (shell){i, count, ix->distance[i], outer, 0.999999f * LONGEST / fmaxf(outer, 1)};
            i += count;
        }
    }
    ix->first_shell[ix->groups] = made;
}

/* The j-th of the 16-bit numbers that are kept in pairs, the even one in the low half on any machine. */
static void put(int32_t *pairs, int64_t j, double value)
{
    const uint32_t bits = (uint16_t)(int16_t)value;
    pairs[j / 2] |= (int32_t)(j % 2 ? bits << 16 : bits);
}

/* The members seen from their pivots in 16 bits, and minus half their squared lengths in the next place. */
static void round_members(candidate_index *ix)
{
    for (int64_t g = 0; g < ix->groups; g++)
        for (int32_t s = ix->first_shell[g]; s < ix->first_shell[g + 1]; s++)
            for (int32_t i = ix->shells[s].first; i < ix->shells[s].first + ix->shells[s].count; i++) {
                const int32_t *c = ix->candidates + (int64_t)ix->member[i] * ix->d;
                const float *p = ix->pivots + g * ix->d;
                int32_t *out = ix->rounded + i * ix->pairs;
                const double scale = (double)ix->shells[s].scale;
                double squared = 0;
                for (int64_t j = 0; j < ix->d; j++) {
                    const double place = scale * (c[j] - (double)p[j]);
                    squared += place * place;
                    put(out, j, rint(place));
                }
                put(out, ix->d, -rint(squared / (2 << BIAS_SHIFT)));
            }
}

static int measure_gaps(candidate_index *ix)
{
    const int64_t groups = ix->groups;
    sortable *near = malloc((size_t)groups * sizeof(sortable));
    if (!near) return 0;
    for (int64_t a = 0; a < groups; a++) {
        for (int64_t b = 0; b < groups; b++) {
            double squared = 0;
            for (int64_t j = 0; j < ix->d; j++) {
                const double gap = (double)ix->pivots[a * ix->d + j] - (double)ix->pivots[b * ix->d + j];
                squared += gap * gap;
            }
            ix->gap[a * groups + b] = (float)sqrt(squared);
            near[b] = (sortable){a == b ? -1 : ix->gap[a * groups + b], (int32_t)b};
        }
        qsort(near, (size_t)groups, sizeof(sortable), by_key);
        for (int64_t b = 0; b < groups; b++) ix->closest[a * groups + b] = near[b].value;
    }
    free(near);
    return 1;
}

static int allocate(candidate_index *ix)
{
    const size_t m = (size_t)ix->m, d = (size_t)ix->d, groups = (size_t)ix->groups;
    ix->candidates = malloc(m * d * sizeof(int32_t));
    ix->squared = malloc(m * sizeof(int64_t));
    ix->member = malloc(m * sizeof(int32_t));
    ix->distance = malloc(m * sizeof(float));
    ix->rounded = calloc(m * (size_t)ix->pairs, sizeof(int32_t));
    ix->pivots = malloc(groups * d * sizeof(float));
    ix->half = malloc(groups * sizeof(float));
    ix->gap = malloc(groups * groups * sizeof(float));
    ix->closest = malloc(groups * groups * sizeof(int32_t));
    ix->radius = malloc(groups * sizeof(float));
    ix->first_shell = malloc((groups + 1) * sizeof(int32_t));
    ix->shells = malloc(m * sizeof(shell));
    return ix->candidates && ix->squared && ix->member && ix->distance && ix->rounded && ix->pivots &&
           ix->half && ix->gap && ix->closest && ix->radius && ix->first_shell && ix->shells;
}

candidate_index *build_index(const int32_t *candidates, int64_t m, int64_t d, int64_t groups)
{
    candidate_index *ix = calloc(1, sizeof(candidate_index));
    int32_t *start = malloc((size_t)(groups + 1) * sizeof(int32_t));
    int done = 0;
    if (ix && start) {
        ix->m = m; ix->d = d; ix->groups = groups; ix->pairs = (d + 2) / 2;
        if (allocate(ix)) {
            memcpy(ix->candidates, candidates, (size_t)(m * d) * sizeof(int32_t));
            for (int64_t i = 0; i < m; i++) ix->squared[i] = squared_length(candidates + i * d, d);
            for (int64_t i = 0; i < m * d; i++) ix->wide |= candidates[i] >= EXACT_FLOAT || candidates[i] <= -EXACT_FLOAT;
            done = ix->wide || (choose_pivots(ix) && sort_members(ix, start) && measure_gaps(ix));
            if (done && !ix->wide) { cut_shells(ix, start); round_members(ix); }
        }
    }
    free(start);
    if (!done) { free_index(ix); return NULL; }
    return ix;
}
