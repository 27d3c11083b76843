/* Networks of operations on an array of wires: CE(a, b) orders two wires, LO(a, b) stores the
 * minimum of both in wire a, and HI(a, b) the maximum in wire b. */
#ifndef GF_PERCENTILE_NETWORKS_H
#define GF_PERCENTILE_NETWORKS_H

/* clang-format would nest the operations. */
/* clang-format off */

/* Sort 2 to 7 wires, with the least number of operations. */
#define GF_SORT_2(CE)                                                                              \
    CE(0, 1)
#define GF_SORT_3(CE)                                                                              \
    CE(0, 2) CE(0, 1) CE(1, 2)
#define GF_SORT_4(CE)                                                                              \
    CE(0, 2) CE(1, 3) CE(0, 1) CE(2, 3) CE(1, 2)
#define GF_SORT_5(CE)                                                                              \
    CE(0, 3) CE(1, 4) CE(0, 2) CE(1, 3) CE(0, 1) CE(2, 4) CE(1, 2) CE(3, 4) CE(2, 3)
#define GF_SORT_6(CE)                                                                              \
    CE(0, 5) CE(1, 3) CE(2, 4) CE(1, 2) CE(3, 4) CE(0, 3) CE(2, 5) CE(0, 1) CE(2, 3) CE(4, 5)      \
    CE(1, 2) CE(3, 4)
#define GF_SORT_7(CE)                                                                              \
    CE(0, 6) CE(2, 3) CE(4, 5) CE(0, 2) CE(1, 4) CE(3, 6) CE(0, 1) CE(2, 5) CE(3, 4) CE(1, 2)      \
    CE(4, 6) CE(2, 3) CE(4, 5) CE(1, 2) CE(3, 4) CE(5, 6)

/* Move the samples in the middle of K sorted columns of K - 1 to the wires GF_CORE_ORDER_K, in order:
 * the K + 1 that can be the median if K more samples are added. Wire c * (K - 1) + j is number j of
 * column c. Pairs of columns are merged (Batcher), then pairs of pairs, without operations that
 * never exchange wires or do not lead to these samples: 16, 114 and 398 minima and maxima. A test proves
 * the networks for all inputs of 0 and 1, and so for all inputs. */
#define GF_CORE_3(CE, LO, HI)                                                               \
    CE(0, 2) CE(1, 3) CE(1, 2) HI(0, 4) CE(2, 4) CE(1, 5) LO(3, 5) CE(1, 2) CE(3, 4)
#define GF_CORE_ORDER_3 1, 2, 3, 4
#define GF_CORE_5(CE, LO, HI)                                                               \
    CE(0, 4) CE(2, 6) CE(2, 4) CE(1, 5) CE(3, 7) CE(3, 5) CE(1, 2) CE(3, 4) CE(5, 6) CE(8, 12)     \
    CE(10, 14) CE(10, 12) CE(9, 13) CE(11, 15) CE(11, 13) CE(9, 10) CE(11, 12) CE(13, 14)          \
    CE(0, 8) CE(4, 12) CE(4, 8) CE(2, 10) CE(6, 14) CE(6, 10) CE(2, 4) CE(6, 8) CE(10, 12)         \
    CE(1, 9) CE(5, 13) CE(5, 9) CE(3, 11) LO(7, 15) CE(7, 11) CE(3, 5) CE(7, 9) CE(11, 13)         \
    CE(1, 2) CE(3, 4) CE(5, 6) CE(7, 8) CE(9, 10) CE(11, 12) LO(13, 14) HI(0, 16) CE(8, 16)        \
    HI(4, 8) LO(12, 16) HI(2, 18) LO(10, 18) CE(6, 10) HI(6, 8) CE(10, 12) HI(1, 17) CE(9, 17)     \
    HI(5, 9) LO(13, 17) HI(3, 19) LO(11, 19) CE(7, 11) CE(7, 9) LO(11, 13) CE(7, 8) CE(9, 10)      \
    CE(11, 12)
#define GF_CORE_ORDER_5 7, 8, 9, 10, 11, 12
#define GF_CORE_7(CE, LO, HI)                                                               \
    CE(0, 6) CE(4, 10) CE(4, 6) CE(2, 8) CE(2, 4) CE(8, 6) CE(1, 7) CE(5, 11) CE(5, 7) CE(3, 9)    \
    CE(3, 5) CE(9, 7) CE(1, 2) CE(3, 4) CE(5, 8) CE(9, 6) CE(7, 10) CE(12, 18) CE(16, 22)          \
    CE(16, 18) CE(14, 20) CE(14, 16) CE(20, 18) CE(13, 19) CE(17, 23) CE(17, 19) CE(15, 21)        \
    CE(15, 17) CE(21, 19) CE(13, 14) CE(15, 16) CE(17, 20) CE(21, 18) CE(19, 22) CE(24, 30)        \
    CE(28, 34) CE(28, 30) CE(26, 32) CE(26, 28) CE(32, 30) CE(25, 31) CE(29, 35) CE(29, 31)        \
    CE(27, 33) CE(27, 29) CE(33, 31) CE(25, 26) CE(27, 28) CE(29, 32) CE(33, 30) CE(31, 34)        \
    CE(0, 12) CE(6, 18) CE(6, 12) CE(4, 16) CE(4, 6) CE(16, 12) CE(2, 14) CE(10, 22) CE(10, 14)    \
    CE(8, 20) CE(8, 10) CE(20, 14) CE(2, 4) CE(8, 6) CE(10, 16) CE(20, 12) CE(14, 18) CE(1, 13)    \
    CE(7, 19) CE(7, 13) CE(5, 17) CE(5, 7) CE(17, 13) CE(3, 15) CE(11, 23) CE(11, 15) CE(9, 21)    \
    CE(9, 11) CE(21, 15) CE(3, 5) CE(9, 7) CE(11, 17) CE(21, 13) CE(15, 19) CE(1, 2) CE(3, 4)      \
    CE(5, 8) CE(9, 6) CE(7, 10) CE(11, 16) CE(17, 20) CE(21, 12) CE(13, 14) CE(15, 18)             \
    CE(19, 22) CE(0, 24) CE(12, 24) CE(6, 30) CE(6, 12) CE(30, 24) CE(4, 28) CE(18, 28)            \
    CE(16, 18) CE(4, 6) CE(16, 12) CE(18, 30) CE(28, 24) CE(2, 26) CE(14, 26) CE(10, 34)           \
    CE(10, 14) CE(34, 26) CE(8, 32) CE(22, 32) CE(20, 22) CE(8, 10) CE(20, 14) CE(22, 34)          \
    CE(32, 26) CE(2, 4) LO(8, 6) CE(10, 16) CE(20, 12) CE(14, 18) CE(22, 30) CE(34, 28)            \
    HI(32, 24) CE(1, 25) CE(13, 25) CE(7, 31) CE(7, 13) CE(31, 25) CE(5, 29) CE(19, 29)            \
    CE(17, 19) CE(5, 7) CE(17, 13) CE(19, 31) CE(29, 25) CE(3, 27) CE(15, 27) CE(11, 35)           \
    CE(11, 15) CE(35, 27) CE(9, 33) CE(23, 33) CE(21, 23) CE(9, 11) CE(21, 15) CE(23, 35)          \
    CE(33, 27) CE(3, 5) HI(9, 7) CE(11, 17) CE(21, 13) CE(15, 19) CE(23, 31) LO(35, 29)            \
    CE(33, 25) CE(1, 2) CE(3, 4) LO(5, 8) CE(7, 10) CE(11, 16) CE(17, 20) CE(21, 12) CE(13, 14)    \
    CE(15, 18) CE(19, 22) CE(23, 30) CE(31, 34) LO(35, 28) HI(33, 24) CE(25, 26) HI(0, 36)         \
    LO(24, 36) HI(12, 24) LO(30, 24) HI(4, 40) LO(18, 40) HI(16, 18) CE(18, 30) HI(2, 38)          \
    LO(26, 38) CE(14, 26) HI(10, 14) LO(34, 26) HI(20, 14) LO(22, 34) CE(14, 18) CE(22, 30)        \
    HI(1, 37) LO(25, 37) CE(13, 25) HI(7, 13) LO(31, 25) HI(5, 41) LO(19, 41) CE(17, 19)           \
    HI(17, 13) CE(19, 31) HI(3, 39) LO(27, 39) CE(15, 27) HI(11, 15) LO(35, 27) CE(21, 15)         \
    LO(23, 35) HI(21, 13) CE(15, 19) LO(23, 31) CE(13, 14) CE(15, 18) CE(19, 22) CE(23, 30)
#define GF_CORE_ORDER_7 13, 14, 15, 18, 19, 22, 23, 30

/* Move the median of K + 1 sorted wires and K more to wire K. */
#define GF_MEDIAN_3(CE, LO, HI)                                                                    \
    HI(0, 4) LO(2, 6) HI(2, 4) HI(1, 5) LO(3, 5) LO(3, 4)
#define GF_MEDIAN_5(CE, LO, HI)                                                                    \
    HI(0, 6) LO(4, 10) HI(4, 6) HI(2, 8) LO(8, 6) HI(1, 7) LO(5, 7) LO(3, 9) HI(3, 5) LO(5, 8)
#define GF_MEDIAN_7(CE, LO, HI)                                                                    \
    HI(0, 8) LO(4, 12) HI(4, 8) HI(2, 10) LO(6, 14) LO(6, 10) HI(6, 8) HI(1, 9) LO(5, 13)          \
    HI(5, 9) HI(3, 11) LO(7, 11) LO(7, 9) LO(7, 8)

/* Find the medians of two windows: each LO and HI adds a wire, the minimum or maximum of two or three
 * others, and the last two wires are the medians. First wires: 2 K sorted samples in the middle of
 * the K - 1 columns of K - 1 that both have, K - 1 sorted samples of another column of both, K - 1 of
 * a row of the first window, as many of the second, and the remaining sample of the first and of the
 * second. Found by random changes that kept the results; a test proves them. */
#define GF_TWO_MEDIANS_5(LO, HI)                                                                   \
    HI(6, 12) LO(5, 11) LO(2, 12) LO(6, 12) HI(2, 27) LO(7, 13, 24) LO(8, 11) HI(4, 10)            \
    LO(28, 31) HI(1, 25, 26) HI(5, 30) HI(29, 31) HI(27, 31) LO(3, 29) HI(33, 37) LO(34, 35)       \
    HI(0, 10, 37) LO(4, 33, 40) LO(32, 38) LO(29, 36, 39) HI(34, 35) HI(28, 39) HI(3, 14, 43)      \
    HI(15, 32, 38) HI(3, 18, 43) LO(17, 45, 47) LO(9, 16, 46) HI(22, 41, 49) LO(22, 49)            \
    HI(42, 50, 52) HI(19, 32, 38) LO(21, 45, 54) LO(9, 20, 48) HI(23, 41, 55) LO(23, 55)           \
    HI(42, 56, 58) LO(44, 51, 53) LO(44, 57, 59)
#define GF_TWO_MEDIANS_7(LO, HI)                                                                   \
    LO(9, 18) LO(5, 19) HI(4, 15, 34) LO(3, 17) HI(8, 14) LO(4, 18) HI(5, 19) LO(11, 17)           \
    LO(12, 36, 38) HI(2, 16, 37) HI(36, 38) LO(8, 14) HI(3, 41) LO(10, 16) LO(6, 43) HI(6, 47)     \
    HI(39, 45, 48) LO(42, 49) HI(1, 15, 39) LO(9, 52) HI(0, 14, 35) HI(35, 53) HI(10, 16)          \
    LO(12, 40, 44) LO(48, 53, 54) LO(7, 46) HI(7, 46) LO(55, 59) HI(55, 59) LO(57, 60) LO(51, 62)  \
    HI(54, 57, 60) LO(50, 61) HI(50, 61) HI(51, 62) HI(42, 49) LO(63, 69) HI(63, 69)               \
    LO(13, 56, 65) LO(23, 68) HI(22, 64) HI(21, 67, 73) LO(24, 70, 74) LO(25, 71, 75)              \
    HI(20, 66, 76) LO(32, 78) HI(32, 78) HI(58, 77, 79) LO(29, 68) HI(28, 64) HI(27, 67, 82)       \
    LO(30, 70, 83) LO(31, 71, 84) HI(26, 66, 85) LO(33, 87) HI(33, 87) HI(58, 86, 88)              \
    LO(72, 80, 81) LO(72, 89, 90)

/* clang-format on */

#endif
