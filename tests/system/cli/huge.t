# An image of 5 gigapixels, more than 32 bits count, passes with the default limits: a sparse TIFF with one bit per
# sample, in 250 strips.
$ { printf 'II*\0\10\0\0\0\11\0\0\1\4\0\1\0\0\0@\15\3\0\1\1\4\0\1\0\0\0\250a\0\0\2\1\3\0\1\0\0\0\1\0\0\0\3\1\3\0\1\0\0\0\1\0\0\0\6\1\3\0\1\0\0\0\1\0\0\0\21\1\4\0\372\0\0\0\200\0\0\0\25\1\3\0\1\0\0\0\1\0\0\0\26\1\4\0\1\0\0\0d\0\0\0\27\1\4\0\372\0\0\0\200\0\0\0\0\0\0\0\0\0\0\0'; head -c 5000 /dev/zero; } >huge.tif; gpufilter hist --csv -n 2 huge.tif
> bin,from,to,grey
> 0,0,127,5000000000
> 1,128,255,0
# The rows that resize keeps are short: strips of 10 gigapixels stay small. So do those of an image whose ends are cropped.
$ printf 'P5\n100000 100000\n255\n' >big.pgm; truncate -s 10000000021 big.pgm; printf 'P5\n4000 40000\n255\n' >tall.pgm; truncate -s 160000018 tall.pgm; for size in exact=1000x1000 cover=1000x1000; do for image in big tall; do gpufilter run --dry-run --backend cpu -j 2 --max-pixels 10000000000 $image.pgm ! resize $size ! write z.png | tail -n 1; done; done; rm big.pgm tall.pgm
>   strips: 16667 of 6 rows, 3.4 MB in memory
>   strips: 250 of 160 rows, 3.9 MB in memory
>   strips: 16667 of 6 rows, 3.4 MB in memory
>   strips: 494 of 81 rows, 2.0 MB in memory
