/* Builds the index of the candidates that nearest.h describes. Whatever it chooses, the answers are the same. */
#include "nearest.h"

#include "clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW_MEMBERS 24 /* a shell has at least so many, if the group allows it */
#define STRAY 3.0f     /* strays are so many times as far from their pivot as its members usually are */
#define FEWEST_STRAYS 16

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

typedef struct { uint64_t key; int32_t value; } sortable;

#define DIGIT_BITS 10
#define KEY_BITS 40

/* A list and a distance as one number: sorts by the list first. Bits of positive floats rise with them. */
static uint64_t sorting_key(int64_t list, float distance)
{
    uint32_t bits;
    memcpy(&bits, &distance, sizeof bits);
    return (uint64_t)list << 31 | bits;
}

static float distance_in(uint64_t key)
{
    const uint32_t bits = (uint32_t)(key & 0x7FFFFFFF);
    float distance;
    memcpy(&distance, &bits, sizeof bits);
    return distance;
}

/* Radix sort; `spare` is as long as `items`, which hold the result. */
static void sort_items(sortable *items, sortable *spare, int64_t n)
{
    for (int shift = 0; shift < KEY_BITS; shift += DIGIT_BITS) {
        int64_t start[(1 << DIGIT_BITS) + 1] = {0};
        for (int64_t i = 0; i < n; i++) start[(items[i].key >> shift & ((1 << DIGIT_BITS) - 1)) + 1]++;
        for (int b = 0; b < 1 << DIGIT_BITS; b++) start[b + 1] += start[b];
        for (int64_t i = 0; i < n; i++) spare[start[items[i].key >> shift & ((1 << DIGIT_BITS) - 1)]++] = items[i];
        sortable *swap = items; items = spare; spare = swap;
    }
}

/* The distance of two points, one of integers that are exact in float32 or both of whole floats. */
#define LANES_OF_SUM 16
CLONES static float distance_of(const int32_t *c, const float *p, int64_t d)
{
    double lane[LANES_OF_SUM] = {0}, sum = 0;
    int64_t j = 0;
    for (; j + LANES_OF_SUM <= d; j += LANES_OF_SUM)
        for (int l = 0; l < LANES_OF_SUM; l++) {
            const double gap = c[j + l] - (double)p[j + l];
            lane[l] += gap * gap;
        }
    for (; j < d; j++) sum += (c[j] - (double)p[j]) * (c[j] - (double)p[j]);
    for (int l = 0; l < LANES_OF_SUM; l++) sum += lane[l];
    return (float)sqrt(sum);
}

/* Sorts members by group and distance to the pivot, and fills in where groups start. */
static void sort_members(candidate_index *ix, sortable *items, int32_t *start)
{
    memset(start, 0, (size_t)(ix->groups + 1) * sizeof(int32_t));
    for (int64_t i = 0; i < ix->m; i++) start[(items[i].key >> 31) + 1]++;
    for (int64_t g = 0; g < ix->groups; g++) start[g + 1] += start[g];
    sort_items(items, items + ix->m, ix->m);
}

/* From where on the members of a group, sorted by their distances, are much farther from the pivot than most. */
static int32_t first_stray(const sortable *items, int32_t from, int32_t to)
{
    if (from == to) return to;
    const float usual = distance_in(items[(from + to) / 2].key);
    while (distance_in(items[to - 1].key) > STRAY * usual) to--;
    return to;
}

/* Strays are gathered around one pivot of their own, or nearly every group would reach so far that it has to be
 * visited. Returns whether there are enough of them. */
static int gather_strays(candidate_index *ix, sortable *items, const int32_t *start, double *sum)
{
    int64_t count = 0;
    float *pivot = ix->pivots + ix->homes * ix->d;
    for (int64_t g = 0; g < ix->homes; g++) count += start[g + 1] - first_stray(items, start[g], start[g + 1]);
    if (count < FEWEST_STRAYS) return 0;
    memset(sum, 0, (size_t)ix->d * sizeof(double));
    for (int64_t g = 0; g < ix->homes; g++)
        for (int32_t i = first_stray(items, start[g], start[g + 1]); i < start[g + 1]; i++) {
            items[i].key = sorting_key(ix->homes, 0);
            for (int64_t j = 0; j < ix->d; j++) sum[j] += ix->candidates[items[i].value * ix->d + j];
        }
    for (int64_t j = 0; j < ix->d; j++) pivot[j] = (float)rint(sum[j] / (double)count);
    for (int64_t i = 0; i < ix->m; i++)
        if (items[i].key >> 31 == (uint64_t)ix->homes)
            items[i].key = sorting_key(ix->homes, distance_of(ix->candidates + items[i].value * ix->d, pivot, ix->d));
    ix->groups = ix->homes + 1;
    return 1;
}

/* Members of each group, by their distance to the pivot. */
static int group_members(candidate_index *ix, int32_t *start, int set)
{
    sortable *items = malloc((size_t)(2 * ix->m) * sizeof(sortable));
    int32_t *home = malloc((size_t)ix->m * sizeof(int32_t));
    double *sum = malloc((size_t)ix->d * sizeof(double));
    const int done = items && home && sum && find_pivots(ix, ix->candidates, ix->m, set, home);
    ix->groups = ix->homes;
    if (done) {
        for (int64_t i = 0; i < ix->m; i++) {
            const float distance = distance_of(ix->candidates + i * ix->d, ix->pivots + home[i] * ix->d, ix->d);
            items[i] = (sortable){sorting_key(home[i], distance), (int32_t)i};
        }
        sort_members(ix, items, start);
        if (ix->homes > 1 && gather_strays(ix, items, start, sum)) sort_members(ix, items, start);
        for (int64_t i = 0; i < ix->m; i++) {
            ix->distance[i] = distance_in(items[i].key);
            ix->member[i] = items[i].value;
        }
    }
    free(items); free(home); free(sum);
    return done;
}

/* Shells: members whose distances differ by no more than a factor of two, unless they would be too few. */
static void cut_shells(candidate_index *ix, const int32_t *start)
{
    int32_t made = 0;
    for (int64_t g = 0; g < ix->groups; g++) {
        ix->first_shell[g] = made;
        ix->radius[g] = start[g + 1] > start[g] ? ix->distance[start[g + 1] - 1] : 0;
        if (g < ix->homes && ix->radius[g] > ix->farthest) ix->farthest = ix->radius[g];
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

/* A member seen from its pivot in 16 bits, two numbers to a word, the even one in the low half on any machine. */
CLONES static void round_member(const int32_t *c, const float *p, int64_t d, float scale, int32_t *restrict whole,
                                int32_t *restrict out)
{
    for (int64_t j = 0; j < d; j++) {
        const float place = scale * ((float)c[j] - p[j]);
        whole[j] = (int32_t)(place + (place < 0 ? -0.5f : 0.5f));
    }
    for (int64_t j = 0; j < d / 2; j++) out[j] = (whole[2 * j] & 0xFFFF) | (int32_t)((uint32_t)whole[2 * j + 1] << 16);
    out[d / 2] = d % 2 ? whole[d - 1] & 0xFFFF : 0;
}

/* All members so, and minus half their squared lengths in the place after that. */
static int round_members(candidate_index *ix)
{
    int32_t *whole = malloc((size_t)ix->d * sizeof(int32_t));
    if (!whole) return 0;
    for (int64_t g = 0; g < ix->groups; g++)
        for (int32_t s = ix->first_shell[g]; s < ix->first_shell[g + 1]; s++)
            for (int32_t i = ix->shells[s].first; i < ix->shells[s].first + ix->shells[s].count; i++) {
                int32_t *out = ix->rounded + i * ix->pairs;
                const double length = (double)ix->shells[s].scale * ix->distance[i];
                const int32_t bias = -(int32_t)rint(length * length / (2 << BIAS_SHIFT));
                round_member(ix->candidates + (int64_t)ix->member[i] * ix->d, ix->pivots + g * ix->d, ix->d,
                             ix->shells[s].scale, whole, out);
                out[ix->d / 2] |= ix->d % 2 ? (int32_t)((uint32_t)bias << 16) : bias & 0xFFFF;
            }
    free(whole);
    return 1;
}

/* Distances of pivots, and for each of them the others by nearness. */
static int measure_gaps(candidate_index *ix)
{
    const int64_t groups = ix->homes, d = ix->d, all = groups * groups;
    sortable *items = malloc((size_t)(2 * all) * sizeof(sortable));
    int32_t *whole = malloc((size_t)d * sizeof(int32_t));
    if (items && whole) {
        for (int64_t a = 0; a < groups; a++) {
            for (int64_t j = 0; j < d; j++) whole[j] = (int32_t)ix->pivots[a * d + j];
            for (int64_t b = 0; b < groups; b++)
                ix->gap[a * groups + b] = b < a ? ix->gap[b * groups + a] : distance_of(whole, ix->pivots + b * d, d);
        }
        for (int64_t i = 0; i < all; i++)
            items[i] = (sortable){sorting_key(i / groups, ix->gap[i]), (int32_t)(i % groups)};
        sort_items(items, items + all, all);
        for (int64_t i = 0; i < all; i++) ix->closest[i] = items[i].value;
    }
    const int done = items && whole;
    free(items); free(whole);
    return done;
}

static int allocate(candidate_index *ix)
{
    const size_t m = (size_t)ix->m, d = (size_t)ix->d, groups = (size_t)ix->homes + 1;
    ix->candidates = malloc(m * d * sizeof(int32_t));
    ix->squared = malloc(m * sizeof(int64_t));
    ix->member = malloc(m * sizeof(int32_t));
    ix->distance = malloc(m * sizeof(float));
    ix->rounded = malloc(m * (size_t)ix->pairs * sizeof(int32_t));
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

static int fill_index(candidate_index *ix, const int32_t *candidates, int64_t groups, int set)
{
    memcpy(ix->candidates, candidates, (size_t)(ix->m * ix->d) * sizeof(int32_t));
    for (int64_t i = 0; i < ix->m; i++) ix->squared[i] = squared_length(candidates + i * ix->d, ix->d);
    for (int64_t i = 0; i < ix->m * ix->d; i++)
        ix->wide |= candidates[i] >= EXACT_FLOAT || candidates[i] <= -EXACT_FLOAT;
    if (ix->wide) return 1;
    int32_t *start = malloc((size_t)(ix->homes + 2) * sizeof(int32_t));
    int done = start && choose_pivots(ix, groups, set) && group_members(ix, start, set) && measure_gaps(ix);
    if (done) {
        cut_shells(ix, start);
        done = round_members(ix);
    }
    free(start);
    return done;
}

/* With so many groups, or with as many as pay if that is 0. */
candidate_index *build_index(const int32_t *candidates, int64_t m, int64_t d, int64_t groups, int set)
{
    candidate_index *ix = calloc(1, sizeof(candidate_index));
    if (!ix) return NULL;
    ix->m = m; ix->d = d; ix->pairs = (d + 2) / 2;
    ix->homes = groups ? groups : m < MOST_PIVOTS ? m : MOST_PIVOTS;
    if (allocate(ix) && fill_index(ix, candidates, groups, set)) return ix;
    free_index(ix);
    return NULL;
}
