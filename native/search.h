/* The search of nearest.h for one instruction set; search.c includes it once for each, with LANES rows at a time.
 *
 * With r = x - p and s = c - p, seen from the pivot, |x - c|^2 = |r|^2 - 2 h, where h = r.s - |s|^2 / 2. The
 * score is V = R.S - W B for the rounded vectors R = rho r, S = sigma s, and the rounded numbers
 * W = 2^14 rho / sigma and B = |sigma s|^2 / 2^15. It is rho sigma h but for what the rounding did:
 *   - |R - rho r| and |S - sigma s| <= 0.51 sqrt(d), |rho r| and |sigma s| <= A = LONGEST, so R.S is off by at
 *     most 1.02 sqrt(d) A + 0.27 d;
 *   - W and B are off by 0.51 each, W < 2^15 and B < 27500, so W B is off by at most 31000;
 *   - the low 8 bits of V name the candidate: 256.
 * The sum of the three is the slack. No partial sum reaches 2^31: |R.S| < 9.2e8 and W B < 9.1e8.
 */
#define PASTE(a, b) a##_##b
#define JOIN(a, b) PASTE(a, b)
#define FN(name) JOIN(name, SET)
#define floats FN(floats)
#define ints FN(ints)
#define BLOCK 8

typedef float floats __attribute__((vector_size(LANES * 4)));
typedef int32_t ints __attribute__((vector_size(LANES * 4)));

typedef struct {
    floats *x;      /* [d]: a coordinate of LANES rows */
    ints *rounded;  /* [pairs]: R, and W in the last place */
    floats squared, low, high; /* |r|^2; bounds of |r| */
    floats scale, unit; /* rho, and 2 / rho */
    floats reach;   /* no candidate farther than this matters */
    floats estimate, floor, ceiling; /* of |x - c|^2 for the best candidate so far, and bounds of it */
    floats runner;  /* lower bound of |x - c|^2 for all others */
    ints best;
} FN(tile);

static inline floats FN(pick)(ints mask, floats a, floats b)
{
    return (floats)((mask & (ints)a) | (~mask & (ints)b));
}

static inline floats FN(smaller)(floats a, floats b) { return FN(pick)(a < b, a, b); }
static inline floats FN(larger)(floats a, floats b) { return FN(pick)(a > b, a, b); }
static inline floats FN(all)(float value) { return (floats){0} + value; }

static inline float FN(least)(floats v) { return -MOST(-v); }

static void FN(load)(floats *x, const int32_t *const *rows, int64_t d)
{
    float *out = (float *)x;
    for (int64_t j = 0; j < d; j++)
        for (int l = 0; l < LANES; l++) out[j * LANES + l] = (float)rows[l][j];
}

/* The nearest pivots of LANES rows and the second nearest, nearly: only the order of work depends on them. */
static void FN(nearest_pivots)(const candidate_index *ix, const floats *x, int32_t *home, int32_t *other)
{
    floats top = FN(all)(-INFINITY), next = top;
    ints best = {0}, second = {0};
    for (int64_t g = 0; g < ix->homes; g += BLOCK) {
        const float *p[BLOCK];
        floats score[BLOCK];
        for (int b = 0; b < BLOCK; b++) {
            const int64_t at = g + b < ix->homes ? g + b : ix->homes - 1;
            p[b] = ix->pivots + at * ix->d;
            score[b] = FN(all)(-ix->half[at]);
        }
        for (int64_t j = 0; j < ix->d; j++)
            for (int b = 0; b < BLOCK; b++) score[b] += x[j] * p[b][j];
        for (int b = 0; b < BLOCK; b++) {
            const ints above = score[b] > top, between = score[b] > next;
            const ints it = (ints){0} + (int32_t)(g + b < ix->homes ? g + b : ix->homes - 1);
            second = (above & best) | (~above & ((between & it) | (~between & second)));
            next = FN(pick)(above, top, FN(larger)(next, score[b]));
            best = (above & it) | (~above & best);
            top = FN(pick)(above, score[b], top);
        }
    }
    for (int l = 0; l < LANES; l++) { home[l] = best[l]; other[l] = second[l]; }
}

/* How far the rows are from a pivot. Each of d + 3 operations rounds by 2^-24 of the result at most. */
static void FN(approach)(const candidate_index *ix, FN(tile) *t, int64_t g)
{
    const float *p = ix->pivots + g * ix->d;
    floats sum[4] = {{0}};
    int64_t j = 0;
    for (; j + 4 <= ix->d; j += 4)
        for (int l = 0; l < 4; l++) {
            const floats gap = t->x[j + l] - p[j + l];
            sum[l] += gap * gap;
        }
    for (; j < ix->d; j++) { const floats gap = t->x[j] - p[j]; sum[0] += gap * gap; }
    const float slack = (float)(ix->d + 16) * 0x1p-23f;
    t->squared = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    const floats length = ROOT(t->squared);
    t->low = length * (1 - slack);
    t->high = length * (1 + slack);
    t->scale = FN(all)(INFINITY);
}

static inline ints FN(to_ints)(floats v)
{
    /* Adding 3 * 2^22 leaves a number of at most 22 bits, rounded, in the low bits. */
    return (ints)(v + 12582912.0f) - (ints)FN(all)(12582912.0f);
}

/* R for a shell's sigma, and W. */
static void FN(round_rows)(const candidate_index *ix, FN(tile) *t, int64_t g, float sigma)
{
    const float *p = ix->pivots + g * ix->d;
    const int64_t d = ix->d, last = d / 2;
    const floats wanted = FN(smaller)(LONGEST / t->high, FN(all)(STEEPEST * sigma));
    if (ANY(t->scale > wanted)) {
        t->scale = wanted;
        t->unit = 2 / wanted;
        for (int64_t j = 0; j < last; j++) {
            const ints a = FN(to_ints)((t->x[2 * j] - p[2 * j]) * wanted);
            const ints b = FN(to_ints)((t->x[2 * j + 1] - p[2 * j + 1]) * wanted);
            t->rounded[j] = (a & 0xFFFF) | (b << 16);
        }
        t->rounded[last] = d % 2 ? FN(to_ints)((t->x[d - 1] - p[d - 1]) * wanted) & 0xFFFF : (ints){0};
    }
    const ints weight = FN(to_ints)(t->scale * ((1 << BIAS_SHIFT) / sigma));
    t->rounded[last] = d % 2 ? (t->rounded[last] & 0xFFFF) | (weight << 16) : weight;
}

/* Scores of BLOCK candidates for LANES rows. */
static inline __attribute__((always_inline)) void FN(score)(const ints *rounded, int64_t pairs,
                                                            const int32_t *const *c, ints *score)
{
    for (int b = 0; b < BLOCK; b++) score[b] = (ints){0};
    for (int64_t j = 0; j < pairs; j++) {
        const ints x = rounded[j];
        for (int b = 0; b < BLOCK; b++) score[b] = DOT(score[b], x, c[b][j]);
    }
}

static inline void FN(point)(const candidate_index *ix, int64_t first, int64_t count, const int32_t **c)
{
    for (int b = 0; b < BLOCK; b++) c[b] = ix->rounded + (first + (b < count ? b : count - 1)) * ix->pairs;
}

/* Take in the scores of `count` of BLOCK candidates; each score names its candidate in its low bits. */
static inline __attribute__((always_inline)) void FN(rank)(const ints *score, int64_t count, int32_t number,
                                                           ints *first, ints *second)
{
    for (int b = 0; b < count; b++) {
        const ints v = (score[b] & -(1 << INDEX_BITS)) | (number + b);
        *second = MAX(*second, MIN(*first, v));
        *first = MAX(*first, v);
    }
}

/* The two best scores among the members from `from` to before `to`. On its own, or the compiler runs out of
 * registers in the one loop that counts. */
static __attribute__((noinline)) void FN(best_two)(const candidate_index *ix, const ints *rounded, int64_t from,
                                                   int64_t to, ints *one, ints *two)
{
    const int32_t *c[BLOCK];
    ints score[BLOCK], first = (ints){0} + INT32_MIN, second = first;
    int64_t i = from;
    for (; i + BLOCK <= to; i += BLOCK) {
        FN(point)(ix, i, BLOCK, c);
        FN(score)(rounded, ix->pairs, c, score);
        FN(rank)(score, BLOCK, (int32_t)(i - from), &first, &second);
    }
    if (i < to) {
        FN(point)(ix, i, to - i, c);
        FN(score)(rounded, ix->pairs, c, score);
        FN(rank)(score, to - i, (int32_t)(i - from), &first, &second);
    }
    *one = first;
    *two = second;
}

static inline floats FN(to_floats)(ints v) { return __builtin_convertvector(v, floats); }

/* Squared distances for scores, and by how much they may be wrong. */
static inline floats FN(gauge)(const FN(tile) *t, float sigma, float slack, float rounding, ints score, floats *off)
{
    const floats unit = t->unit / sigma, gain = FN(to_floats)(score) * unit;
    *off = slack * unit + rounding * (t->squared + FN(larger)(gain, -gain));
    return t->squared - gain;
}

static inline float FN(rounding)(const candidate_index *ix) { return (float)(ix->d + 16) * 0x1p-22f; }

static inline float FN(slack)(const candidate_index *ix)
{
    return 1.02f * sqrtf((float)ix->d) * LONGEST + 0.27f * (float)ix->d + 31300;
}

/* Take in the two best of a shell; returns whether one of them is the best for some row. */
static int FN(merge)(const candidate_index *ix, FN(tile) *t, float sigma, int64_t from, ints one, ints two)
{
    const float slack = FN(slack)(ix), rounding = FN(rounding)(ix);
    floats off, off_two;
    const floats near = FN(gauge)(t, sigma, slack, rounding, one, &off);
    const floats next = FN(gauge)(t, sigma, slack, rounding, two, &off_two) - off_two;
    const ints better = near < t->estimate;
    const ints place = (one & ((1 << INDEX_BITS) - 1)) + (int32_t)from;
    const floats loser = FN(pick)(better, t->floor, near - off);
    t->runner = FN(smaller)(t->runner, FN(smaller)(next, loser));
    t->best = (better & place) | (~better & t->best);
    t->estimate = FN(pick)(better, near, t->estimate);
    t->floor = FN(pick)(better, near - off, t->floor);
    t->ceiling = FN(pick)(better, near + off, t->ceiling);
    if (!ANY(better)) return 0;
    t->reach = FN(smaller)(t->reach, ROOT(FN(larger)(t->ceiling, FN(all)(0))) * 1.000001f);
    return 1;
}

/* The exact side: rows in their integers, and the best candidates so far. */
typedef struct {
    const int32_t *row[LANES];
    int64_t top[LANES];
    int32_t winner[LANES];
} FN(verdict);

/* Exact scores for the members whose distance may be no larger than the best one's upper bound. */
static void FN(judge)(const candidate_index *ix, const FN(tile) *t, float sigma, int64_t from, int64_t to,
                      FN(verdict) *verdict)
{
    const float slack = FN(slack)(ix), rounding = FN(rounding)(ix);
    for (int64_t i = from; i < to; i += BLOCK) {
        const int32_t *c[BLOCK];
        ints score[BLOCK];
        const int64_t count = to - i < BLOCK ? to - i : BLOCK;
        FN(point)(ix, i, count, c);
        FN(score)(t->rounded, ix->pairs, c, score);
        for (int b = 0; b < count; b++) {
            floats off;
            const floats near = FN(gauge)(t, sigma, slack, rounding, score[b], &off);
            const ints close = near - off <= t->ceiling;
            for (int l = 0; l < LANES; l++) {
                if (!close[l]) continue;
                const int32_t member = ix->member[i + b];
                const int64_t exact = exact_score(verdict->row[l], ix->candidates + member * ix->d,
                                                  ix->squared[member], ix->d);
                if (exact > verdict->top[l] || (exact == verdict->top[l] && member < verdict->winner[l])) {
                    verdict->top[l] = exact;
                    verdict->winner[l] = member;
                }
            }
        }
    }
}

/* The distances to the pivot at which members can matter to a row; returns 0 where there are none. */
static int FN(annulus)(const FN(tile) *t, float radius, float *from, float *to)
{
    const floats near = t->low - t->reach;
    const float nearest = FN(least)(near);
    if (!(nearest <= radius * 1.000001f)) return 0;
    *to = MOST(FN(pick)(near <= radius * 1.000001f, t->high + t->reach, FN(all)(0))) * 1.000004f;
    *from = nearest - 0.000004f * *to;
    return 1;
}

/* How many of the members of a shell are nearer to the pivot than this. */
static inline int64_t FN(count_below)(const candidate_index *ix, const shell *shell, float distance)
{
    int32_t count = 0;
    for (int32_t i = 0; i < shell->count; i++) count += ix->distance[shell->first + i] < distance;
    return count;
}

/* Everything in a group that can matter to a row: screened, or judged where there is a verdict to find. Returns
 * whether a row came to know a nearer candidate. */
static int FN(visit)(const candidate_index *ix, FN(tile) *t, int64_t g, FN(verdict) *verdict)
{
    float from, to;
    int nearer = 0;
    if (!FN(annulus)(t, ix->radius[g], &from, &to)) return 0;
    for (const shell *shell = ix->shells + ix->first_shell[g]; shell < ix->shells + ix->first_shell[g + 1]; shell++) {
        if (shell->outer < from) continue;
        if (shell->inner > to) break;
        const int64_t a = shell->first + (shell->inner < from ? FN(count_below)(ix, shell, from) : 0);
        const int64_t b = shell->first + (shell->outer > to ? FN(count_below)(ix, shell, to) : shell->count);
        if (a >= b) continue;
        FN(round_rows)(ix, t, g, shell->scale);
        if (verdict) { FN(judge)(ix, t, shell->scale, a, b, verdict); continue; }
        ints one, two;
        FN(best_two)(ix, t->rounded, a, b, &one, &two);
        if (!FN(merge)(ix, t, shell->scale, a, one, two)) continue;
        nearer = 1;
        if (!FN(annulus)(t, ix->radius[g], &from, &to)) break;
    }
    return nearer;
}

/* All groups that can matter to the rows of a tile, those near to a pivot close to them first. */
static void FN(tour)(const candidate_index *ix, FN(tile) *t, int64_t home, FN(verdict) *verdict)
{
    const float *gap = ix->gap + home * ix->homes;
    FN(approach)(ix, t, home);
    const floats high = t->high;
    const int32_t first = ix->first_shell[home];
    if (!verdict && first < ix->first_shell[home + 1])
        t->reach = FN(smaller)(t->reach, (high + ix->shells[first].inner) * 1.000002f);
    FN(visit)(ix, t, home, verdict);
    if (ix->groups > ix->homes) {
        FN(approach)(ix, t, ix->homes);
        FN(visit)(ix, t, ix->homes, verdict);
    }
    float bound = MOST(high + t->reach) * 1.000004f;
    for (int64_t i = 0; i < ix->homes; i++) {
        const int64_t g = ix->closest[home * ix->homes + i];
        if (g == home) continue;
        if (gap[g] > bound + ix->farthest) break;
        if (gap[g] > bound + ix->radius[g]) continue;
        FN(approach)(ix, t, g);
        if (FN(visit)(ix, t, g, verdict)) bound = MOST(high + t->reach) * 1.000004f;
    }
}

typedef struct {
    int32_t *home, *other, *order; /* a row's nearest pivot, and the next; rows by them */
    int32_t *start;                /* [homes + 1] */
    int32_t *doubtful;             /* places in the order of the rows to settle */
    float *ceiling;                /* of those rows */
} FN(work);

/* Sorts rows by a pivot of theirs and else leaves their order; returns how many have one. */
static int64_t FN(sort_by)(const int32_t *pivot, int64_t homes, const int32_t *rows, int64_t n, int32_t *start,
                           int32_t *sorted)
{
    int64_t count = 0;
    memset(start, 0, (size_t)(homes + 1) * sizeof(int32_t));
    for (int64_t i = 0; i < n; i++)
        if (pivot[rows[i]] >= 0) { start[pivot[rows[i]] + 1]++; count++; }
    for (int64_t g = 0; g < homes; g++) start[g + 1] += start[g];
    for (int64_t i = 0; i < n; i++)
        if (pivot[rows[i]] >= 0) sorted[start[pivot[rows[i]]]++] = rows[i];
    return count;
}

/* Rows that are exact in float32, sorted by their nearest pivots; returns how many. The others are done here. */
static int64_t FN(sort_rows)(const candidate_index *ix, const int32_t *rows, int64_t n, FN(tile) *t,
                             FN(work) *w, int32_t *labels)
{
    for (int64_t i = 0; i < n; i += LANES) {
        const int32_t *row[LANES];
        int32_t home[LANES], other[LANES];
        for (int l = 0; l < LANES; l++) row[l] = rows + (i + l < n ? i + l : n - 1) * ix->d;
        FN(load)(t->x, row, ix->d);
        FN(nearest_pivots)(ix, t->x, home, other);
        for (int l = 0; l < LANES && i + l < n; l++) {
            int wide = 0;
            for (int64_t j = 0; j < ix->d; j++) wide |= row[l][j] >= EXACT_FLOAT || row[l][j] <= -EXACT_FLOAT;
            w->home[i + l] = wide ? -1 : home[l];
            w->other[i + l] = other[l];
            w->order[i + l] = (int32_t)(i + l);
            if (wide) scan_exactly(row[l], 1, ix->candidates, ix->m, ix->d, labels + i + l);
        }
    }
    FN(sort_by)(w->other, ix->homes, w->order, n, w->start, w->doubtful);
    return FN(sort_by)(w->home, ix->homes, w->doubtful, n, w->start, w->order);
}

static void FN(begin)(FN(tile) *t)
{
    t->reach = t->estimate = t->floor = t->ceiling = t->runner = FN(all)(INFINITY);
    t->best = (ints){0};
}

/* Screens all rows; returns how many are in doubt. */
static int64_t FN(screen)(const candidate_index *ix, const int32_t *rows, int64_t sorted, FN(tile) *t,
                          FN(work) *w, int32_t *labels)
{
    int64_t doubtful = 0;
    for (int64_t i = 0; i < sorted; i += LANES) {
        const int32_t *row[LANES];
        for (int l = 0; l < LANES; l++) row[l] = rows + w->order[i + l < sorted ? i + l : sorted - 1] * ix->d;
        FN(load)(t->x, row, ix->d);
        FN(begin)(t);
        FN(tour)(ix, t, w->home[w->order[i]], NULL);
        for (int l = 0; l < LANES && i + l < sorted; l++) {
            labels[w->order[i + l]] = ix->member[t->best[l]];
            if (t->runner[l] > t->ceiling[l]) continue;
            w->doubtful[doubtful] = w->order[i + l];
            w->ceiling[doubtful++] = t->ceiling[l];
        }
    }
    return doubtful;
}

/* Exact answers for the rows in doubt. */
static void FN(settle)(const candidate_index *ix, const int32_t *rows, int64_t doubtful, FN(tile) *t,
                       const FN(work) *w, int32_t *labels)
{
    for (int64_t i = 0; i < doubtful; i += LANES) {
        FN(verdict) verdict;
        FN(begin)(t);
        for (int l = 0; l < LANES; l++) {
            const int64_t at = i + l < doubtful ? i + l : doubtful - 1;
            verdict.row[l] = rows + w->doubtful[at] * ix->d;
            verdict.top[l] = INT64_MIN;
            t->ceiling[l] = w->ceiling[at];
        }
        FN(load)(t->x, verdict.row, ix->d);
        t->reach = ROOT(FN(larger)(t->ceiling, FN(all)(0))) * 1.000001f;
        FN(tour)(ix, t, w->home[w->doubtful[i]], &verdict);
        for (int l = 0; l < LANES && i + l < doubtful; l++) labels[w->doubtful[i + l]] = verdict.winner[l];
    }
}

static int FN(find)(const candidate_index *ix, const int32_t *rows, int64_t n, int32_t *labels)
{
    int done = 0;
    FN(tile) tile;
    char *room = malloc((size_t)(ix->d + ix->pairs) * sizeof(floats) + 64);
    int32_t *whole = malloc((size_t)(4 * n + ix->homes + 1) * sizeof(int32_t));
    float *ceiling = malloc((size_t)n * sizeof(float));
    if (room && whole && ceiling) {
        tile.x = (floats *)(((uintptr_t)room + 63) / 64 * 64);
        tile.rounded = (ints *)(tile.x + ix->d);
        FN(work) work = {whole, whole + n, whole + 2 * n, whole + 4 * n, whole + 3 * n, ceiling};
        const int64_t sorted = FN(sort_rows)(ix, rows, n, &tile, &work, labels);
        FN(settle)(ix, rows, FN(screen)(ix, rows, sorted, &tile, &work, labels), &tile, &work, labels);
        done = 1;
    }
    free(room); free(whole); free(ceiling);
    return done;
}

/* Fills home with the nearest pivots of some points. */
static int FN(find_pivots)(const candidate_index *ix, const int32_t *points, int64_t n, int32_t *home)
{
    char *room = malloc((size_t)ix->d * sizeof(floats) + 64);
    if (!room) return 0;
    floats *x = (floats *)(((uintptr_t)room + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i += LANES) {
        const int32_t *row[LANES];
        int32_t found[LANES], other[LANES];
        for (int l = 0; l < LANES; l++) row[l] = points + (i + l < n ? i + l : n - 1) * ix->d;
        FN(load)(x, row, ix->d);
        FN(nearest_pivots)(ix, x, found, other);
        for (int l = 0; l < LANES && i + l < n; l++) home[i + l] = found[l];
    }
    free(room);
    return 1;
}

#undef PASTE
#undef JOIN
#undef FN
#undef floats
#undef ints
#undef BLOCK
#undef SET
#undef LANES
#undef DOT
#undef MAX
#undef MIN
#undef ROOT
#undef MOST
#undef ANY
