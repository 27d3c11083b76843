# An image of 5 gigapixels, more than 32 bits count, passes with the default limits: a sparse TIFF with one bit per
# sample, in 250 strips.
$ { printf 'II*\0\10\0\0\0\11\0\0\1\4\0\1\0\0\0@\15\3\0\1\1\4\0\1\0\0\0\250a\0\0\2\1\3\0\1\0\0\0\1\0\0\0\3\1\3\0\1\0\0\0\1\0\0\0\6\1\3\0\1\0\0\0\1\0\0\0\21\1\4\0\372\0\0\0\200\0\0\0\25\1\3\0\1\0\0\0\1\0\0\0\26\1\4\0\1\0\0\0d\0\0\0\27\1\4\0\372\0\0\0\200\0\0\0\0\0\0\0\0\0\0\0'; head -c 5000 /dev/zero; } >huge.tif; gpufilter hist --csv -n 2 huge.tif
> bin,from,to,grey
> 0,0,127,5000000000
> 1,128,255,0
