/* The nearest candidate of every row, exactly, on the integer grid: what index.c builds and search.h asks.
 *
 * Candidates are cut into groups around pivots, and every group is sorted by the distance to its pivot. For a
 * row at a distance D from a pivot, whose best candidate so far lies at most u away, only the members at
 * distances from D - u to D + u can be as near, by the triangle inequality. Strays, which lie much farther from
 * their pivot than most, are a group of their own, so that the others stay small. Groups are cut into shells, runs of
 * similar distances, whose coordinates, seen from the pivot, are rounded to 16 bits. Scores of 16-bit
 * integers are quick and exact; what the rounding did has a proven bound (search.h). Rows whose two best
 * scores are closer than that are settled by exact 64-bit integers. So an answer never depends on rounding, on
 * the other rows, or on the instruction set.
 */
#ifndef PEMEANS_NEAREST_H
#define PEMEANS_NEAREST_H

#include <stdint.h>

#define LONGEST 30000.0f   /* of rounded vectors: products of two, and the bias, stay below 2^31 */
#define BIAS_SHIFT 14      /* the bias is stored in units of 2^14 */
#define STEEPEST 1.99f     /* a row's scale is at most so many times the shell's: its weight fits 16 bits */
#define INDEX_BITS 8       /* the low bits of a score make room for the candidate's number in its shell */
#define SHELL_MEMBERS 128
#define MOST_PIVOTS 128
#define EXACT_FLOAT (1 << 24) /* coordinates below this are exact in float32 */

typedef struct {
    int32_t first, count; /* members, in sorted order */
    float inner, outer;   /* their distances to the pivot */
    float scale;          /* rounded coordinate = scale * coordinate */
} shell;

typedef struct {
    int64_t m, d, pairs; /* pairs: of 16-bit numbers, d coordinates and one for the bias */
    int64_t groups, homes; /* homes: groups around a pivot; the one after them, if any, is that of the strays */
    int32_t *candidates;         /* [m][d], a copy in the caller's order */
    int64_t *squared;            /* [m]: |c|^2 */
    int32_t *member;             /* [m]: sorted place -> candidate */
    float *distance;             /* [m]: of the member to its pivot */
    int32_t *rounded;            /* [m][pairs] */
    float *pivots;               /* [groups][d], whole numbers; room for `most` */
    float *half;                 /* [homes]: |p|^2 / 2 */
    float *gap;                  /* [homes][homes]: distances of pivots */
    int32_t *closest;            /* [homes][homes]: homes by falling nearness to a pivot */
    float *radius;               /* [groups] */
    float farthest;              /* the largest radius of a home */
    int32_t *first_shell;        /* [groups + 1] */
    shell *shells;
    int wide;                    /* some coordinate is not below EXACT_FLOAT: nothing is screened */
} candidate_index;

enum { PLAIN, AVX2, AVX512, VNNI, INSTRUCTION_SETS };

candidate_index *build_index(const int32_t *candidates, int64_t m, int64_t d, int64_t groups, int set);
int choose_pivots(candidate_index *index, int64_t groups, int set);
int find_pivots(const candidate_index *index, const int32_t *points, int64_t n, int set, int32_t *home);
void free_index(candidate_index *index);
int find_nearest(const candidate_index *index, const int32_t *rows, int64_t n, int set, int32_t *labels);
int best_instruction_set(void);
int scan_exactly(const int32_t *rows, int64_t n, const int32_t *candidates, int64_t m, int64_t d,
                 int32_t *labels);

static inline int64_t exact_score(const int32_t *x, const int32_t *c, int64_t squared, int64_t d)
{
    int64_t dot = 0;
    for (int64_t j = 0; j < d; j++) dot += (int64_t)x[j] * c[j];
    return 2 * dot - squared;
}

#endif
