/* The search for each instruction set, and the choice among them at run time. */
#include "nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In any C: the compiler makes of it what the machine has. */
#define SET plain
#define LANES 4
#define DOT(sum, x, y) ((sum) + ((x) << 16 >> 16) * (int32_t)(int16_t)(y) + ((x) >> 16) * ((y) >> 16))
#define MAX(a, b) ((((a) > (b)) & (a)) | (~((a) > (b)) & (b)))
#define MIN(a, b) ((((a) < (b)) & (a)) | (~((a) < (b)) & (b)))
#define ROOT(v) root_of_four(v)
#define MOST(v) most_of_four(v)
#define ANY(mask) any_of_four(mask)
typedef float four_floats __attribute__((vector_size(16)));
static inline four_floats root_of_four(four_floats v)
{
    return (four_floats){sqrtf(v[0]), sqrtf(v[1]), sqrtf(v[2]), sqrtf(v[3])};
}
static inline float most_of_four(four_floats v)
{
    const float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}
typedef int32_t four_ints __attribute__((vector_size(16)));
static inline int any_of_four(four_ints mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; }
#include "search.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define SET avx2
#define LANES 8
#define DOT(sum, x, y) ((sum) + (ints)_mm256_madd_epi16((__m256i)(x), _mm256_set1_epi32(y)))
#define MAX(a, b) ((ints)_mm256_max_epi32((__m256i)(a), (__m256i)(b)))
#define MIN(a, b) ((ints)_mm256_min_epi32((__m256i)(a), (__m256i)(b)))
#define ROOT(v) ((floats)_mm256_sqrt_ps((__m256)(v)))
#define MOST(v) most_of_eight((__m256)(v))
#define ANY(mask) (_mm256_movemask_ps((__m256)(mask)) != 0)
static inline float most_of_eight(__m256 v)
{
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
#include "search.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")
#define SET avx512
#define LANES 16
#define DOT(sum, x, y) ((sum) + (ints)_mm512_madd_epi16((__m512i)(x), _mm512_set1_epi32(y)))
#define MAX(a, b) ((ints)_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#define MIN(a, b) ((ints)_mm512_min_epi32((__m512i)(a), (__m512i)(b)))
#define ROOT(v) ((floats)_mm512_sqrt_ps((__m512)(v)))
#define MOST(v) _mm512_reduce_max_ps((__m512)(v))
#define ANY(mask) (_mm512_movepi32_mask((__m512i)(mask)) != 0)
#include "search.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,avx2")
#define SET vnni
#define LANES 16
#define DOT(sum, x, y) ((ints)_mm512_dpwssd_epi32((__m512i)(sum), (__m512i)(x), _mm512_set1_epi32(y)))
#define MAX(a, b) ((ints)_mm512_max_epi32((__m512i)(a), (__m512i)(b)))
#define MIN(a, b) ((ints)_mm512_min_epi32((__m512i)(a), (__m512i)(b)))
#define ROOT(v) ((floats)_mm512_sqrt_ps((__m512)(v)))
#define MOST(v) _mm512_reduce_max_ps((__m512)(v))
#define ANY(mask) (_mm512_movepi32_mask((__m512i)(mask)) != 0)
#include "search.h"
#pragma GCC pop_options
#endif

int best_instruction_set(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return __builtin_cpu_supports("avx512vnni") ? VNNI : AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return AVX2;
#endif
    return PLAIN;
}

/* Every candidate by exact integers: for few rows, and for what is too wide to be screened. */
int scan_exactly(const int32_t *rows, int64_t n, const int32_t *candidates, int64_t m, int64_t d,
                 int32_t *labels)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t top = INT64_MIN;
        for (int64_t c = 0; c < m; c++) {
            int64_t squared = 0;
            for (int64_t j = 0; j < d; j++) squared += (int64_t)candidates[c * d + j] * candidates[c * d + j];
            const int64_t score = exact_score(rows + i * d, candidates + c * d, squared, d);
            if (score > top) { top = score; labels[i] = (int32_t)c; }
        }
    }
    return 1;
}

int find_pivots(const candidate_index *ix, const int32_t *points, int64_t n, int set, int32_t *home)
{
    switch (set) {
#if defined(__x86_64__)
    case VNNI: return find_pivots_vnni(ix, points, n, home);
    case AVX512: return find_pivots_avx512(ix, points, n, home);
    case AVX2: return find_pivots_avx2(ix, points, n, home);
#endif
    default: return find_pivots_plain(ix, points, n, home);
    }
}

int find_nearest(const candidate_index *ix, const int32_t *rows, int64_t n, int set, int32_t *labels)
{
    if (ix->wide) return scan_exactly(rows, n, ix->candidates, ix->m, ix->d, labels);
    switch (set) {
#if defined(__x86_64__)
    case VNNI: return find_vnni(ix, rows, n, labels);
    case AVX512: return find_avx512(ix, rows, n, labels);
    case AVX2: return find_avx2(ix, rows, n, labels);
#endif
    default: return find_plain(ix, rows, n, labels);
    }
}
