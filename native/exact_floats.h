/* A product and a sum are rounded one by one, as NumPy does it, also where the machine could fuse them: the same
 * seed gives the same numbers everywhere. Include it before any function. */
#ifndef PEMEANS_EXACT_FLOATS_H
#define PEMEANS_EXACT_FLOATS_H

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#endif
