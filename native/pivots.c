/* Pivots for the index: k-means++ seeds of a sample of the candidates, then a Lloyd step. Public randomness is not
 * needed: whatever is chosen, the answers are the same. */
#include "nearest.h"

#include "clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_PER_PIVOT 8
#define TRIALS 2
#define PIVOT_STEPS 1
#define MEMBERS_PER_PIVOT 48
#define ENOUGH_TO_GROUP 256 /* fewer candidates are one group */
#define FEWEST 16    /* pivots, where there are enough candidates */
#define WORTHWHILE 0.6f  /* twice the pivots must shorten the mean distance to this part of it */

/* Fractions that fall evenly into [0, 1): multiples of the golden ratio. */
static double fraction(int64_t i)
{
    return (double)((uint64_t)i * 0x9E3779B97F4A7C15u >> 11) * 0x1p-53;
}

typedef struct {
    int64_t size, d;
    int32_t *chosen;  /* [size]: candidates in the sample */
    float *columns;   /* [d][size] */
    float *room, *gap, *trial, *best; /* [size]: squared distances to the nearest seed */
} sample;

static void free_sample(sample *s)
{
    free(s->chosen); free(s->columns); free(s->room);
}

static int draw_sample(sample *s, const candidate_index *ix, int64_t size)
{
    *s = (sample){.size = size, .d = ix->d};
    s->chosen = malloc((size_t)size * sizeof(int32_t));
    s->columns = malloc((size_t)(size * ix->d) * sizeof(float));
    s->room = malloc((size_t)(3 * size) * sizeof(float));
    if (!s->chosen || !s->columns || !s->room) return 0;
    s->gap = s->room;
    s->trial = s->gap + size;
    s->best = s->trial + size;
    for (int64_t i = 0; i < size; i++) {
        s->chosen[i] = (int32_t)(size == ix->m ? i : (int64_t)(fraction(i + 1) * (double)ix->m));
        for (int64_t j = 0; j < ix->d; j++)
            s->columns[j * size + i] = (float)ix->candidates[s->chosen[i] * ix->d + j];
    }
    return 1;
}

/* Squared distances to one of the sample, where they are smaller than those so far; returns their sum. */
CLONES static float approach_seed(const sample *s, int64_t seed, float *restrict out)
{
    memset(out, 0, (size_t)s->size * sizeof(float));
    for (int64_t j = 0; j < s->d; j++) {
        const float *column = s->columns + j * s->size, c = column[seed];
        for (int64_t i = 0; i < s->size; i++) out[i] += (column[i] - c) * (column[i] - c);
    }
    float total[16] = {0};
    for (int64_t i = 0; i < s->size; i++) {
        out[i] = s->gap[i] < out[i] ? s->gap[i] : out[i];
        total[i % 16] += out[i];
    }
    float sum = 0;
    for (int l = 0; l < 16; l++) sum += total[l];
    return sum;
}

static int64_t drawn(const sample *s, float total, double chance)
{
    double left = chance * total;
    int64_t i = 0;
    while (i < s->size - 1 && (left -= s->gap[i]) >= 0) i++;
    return i;
}

static float mean_distance(const sample *s)
{
    float sum = 0;
    for (int64_t i = 0; i < s->size; i++) sum += sqrtf(s->gap[i]);
    return sum / (float)s->size;
}

/* The best of a few drawn seeds becomes pivot number `count`; returns the sum of the squared distances then. */
static float add_seed(candidate_index *ix, sample *s, int64_t count, float total)
{
    int64_t seed = 0;
    float least = INFINITY;
    for (int t = 0; t < (count ? TRIALS : 1); t++) {
        const int64_t tried = count ? drawn(s, total, fraction(count * TRIALS + t)) : 0;
        const float sum = approach_seed(s, tried, s->trial);
        if (t && sum >= least) continue;
        least = sum;
        seed = tried;
        float *swap = s->best; s->best = s->trial; s->trial = swap;
    }
    float *swap = s->gap; s->gap = s->best; s->best = swap;
    for (int64_t j = 0; j < ix->d; j++) ix->pivots[count * ix->d + j] = s->columns[j * s->size + seed];
    return least;
}

/* Seeds so many pivots, but keeps no more than pay unless just so many are asked for. */
static void seed_pivots(candidate_index *ix, sample *s, int64_t most, int asked)
{
    float total = INFINITY, before = INFINITY;
    int64_t count = 0, paying = FEWEST;
    for (int64_t i = 0; i < s->size; i++) s->gap[i] = INFINITY;
    while (count < most && total > 0) {
        total = add_seed(ix, s, count, total);
        count++;
        if (count < FEWEST || (count & (count - 1))) continue;
        const float now = mean_distance(s);
        if (now < WORTHWHILE * before) paying = count;
        before = now;
    }
    ix->homes = asked || count < paying ? count : paying;
}

/* Pivots become the means of the sampled candidates nearest to them. */
static int move_pivots(candidate_index *ix, const sample *s, int set)
{
    const int64_t d = ix->d;
    int32_t *points = malloc((size_t)(s->size * (d + 1)) * sizeof(int32_t)), *home = points + s->size * d;
    double *sums = calloc((size_t)(ix->homes * (d + 1)), sizeof(double));
    int done = points && sums;
    if (done) {
        for (int64_t i = 0; i < s->size; i++)
            memcpy(points + i * d, ix->candidates + s->chosen[i] * d, (size_t)d * sizeof(int32_t));
        done = find_pivots(ix, points, s->size, set, home);
    }
    for (int64_t i = 0; done && i < s->size; i++) {
        double *sum = sums + home[i] * (d + 1);
        for (int64_t j = 0; j < d; j++) sum[j] += points[i * d + j];
        sum[d]++;
    }
    for (int64_t g = 0; done && g < ix->homes; g++)
        for (int64_t j = 0; j < d && sums[g * (d + 1) + d] > 0; j++)
            ix->pivots[g * d + j] = (float)(sums[g * (d + 1) + j] / sums[g * (d + 1) + d]);
    free(points); free(sums);
    return done;
}

/* Whole numbers below 2^24: differences to a row are rounded only once. */
static void settle_pivots(candidate_index *ix)
{
    for (int64_t g = 0; g < ix->homes; g++) {
        double squared = 0;
        for (int64_t j = 0; j < ix->d; j++) {
            float *p = ix->pivots + g * ix->d + j;
            *p = rintf(*p);
            squared += (double)*p * *p;
        }
        ix->half[g] = (float)(squared / 2);
    }
}

int choose_pivots(candidate_index *ix, int64_t groups, int set)
{
    int64_t most = groups;
    if (!most)
        for (most = 1; most < MOST_PIVOTS && most * MEMBERS_PER_PIVOT * 2 <= ix->m;) most *= 2;
    if (!groups && ix->m < ENOUGH_TO_GROUP) most = 1;
    const int64_t wanted = most * SAMPLE_PER_PIVOT, size = wanted < ix->m ? wanted : ix->m;
    sample s;
    int done = draw_sample(&s, ix, size);
    if (done) {
        seed_pivots(ix, &s, most, groups != 0);
        for (int step = 0; step < PIVOT_STEPS && done; step++) {
            settle_pivots(ix);
            done = move_pivots(ix, &s, set);
        }
        settle_pivots(ix);
    }
    free_sample(&s);
    return done;
}
