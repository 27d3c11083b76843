# Names in JSON: valid UTF-8 is unchanged; invalid bytes become replacement characters.
$ for name in 'a"b\c' $'tab\there' 'ünïcödé' '画像' '😀' $'half\xc3' $'lone\x80' $'over\xc0\xaf' $'surrogate\xed\xa0\x80' $'beyond\xf4\x90\x80\x80' $'five\xf8\x88\x80\x80\x80'; do printf 'P5\n1 1\n255\nx' >"$name.pgm"; gpufilter axis-sum --json "$name.pgm" | sed 's/.*"files": \[\([^]]*\)\].*/\1/'; done
> "a\"b\\c.pgm"
> "tab\u0009here.pgm"
> "ünïcödé.pgm"
> "画像.pgm"
> "😀.pgm"
> "half\ufffd.pgm"
> "lone\ufffd.pgm"
> "over\ufffd\ufffd.pgm"
> "surrogate\ufffd\ufffd\ufffd.pgm"
> "beyond\ufffd\ufffd\ufffd\ufffd.pgm"
> "five\ufffd\ufffd\ufffd\ufffd\ufffd.pgm"
# Requirements of verify.
$ gpufilter verify --backend cpu --device 0
! gpufilter: --device: requires --backend cuda or all
[2]
$ gpufilter verify --samples 0
! gpufilter: --samples '0': must be an integer from 1 to 1000000000000000000; suffixes K, M, G and T are powers of 1024
[2]
$ gpufilter verify --backend golden
! gpufilter: --backend 'golden': must be all, cpu or cuda
[2]
