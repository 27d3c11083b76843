# The published checks: row sums of 0..23, and [0..7] . [0..7].
$ { printf 'P5\n6 4\n255\n'; perl -e 'print pack("C*", 0..23)'; } >m.pgm; for backend in golden cpu; do gpufilter axis-sum -b $backend --csv m.pgm; done
> y,grey
> 0,15
> 1,51
> 2,87
> 3,123
> y,grey
> 0,15
> 1,51
> 2,87
> 3,123
$ { printf 'P5\n8 1\n255\n'; perl -e 'print pack("C*", 0..7)'; } >v.pgm; for backend in golden cpu; do gpufilter dot -b $backend --csv v.pgm v.pgm; done
> channel,a.b,a.a,b.b,cosine,mse,psnr
> grey,140,140,140,1,0,inf
> channel,a.b,a.a,b.b,cosine,mse,psnr
> grey,140,140,140,1,0,inf
$ gpufilter axis-sum m.pgm
> m.pgm: 6x4 grey u8, by cpu
> 
> y  grey
> 0    15
> 1    51
> 2    87
> 3   123
> 
> channel  sum  mean
> grey     276  11.5
$ gpufilter axis-sum --mean m.pgm; gpufilter axis-sum --mean --axis y --csv m.pgm
> m.pgm: 6x4 grey u8, by cpu
> 
> y  grey
> 0   2.5
> 1   8.5
> 2  14.5
> 3  20.5
> 
> channel  sum  mean
> grey     276  11.5
> x,grey
> 0,9
> 1,10
> 2,11
> 3,12
> 4,13
> 5,14
$ gpufilter axis-sum --axis y m.pgm
> m.pgm: 6x4 grey u8, by cpu
> 
> x  grey
> 0    36
> 1    40
> 2    44
> 3    48
> 4    52
> 5    56
> 
> channel  sum  mean
> grey     276  11.5
$ gpufilter axis-sum --json samples/ramp.pfm | sed -E 's/"seconds": [0-9.]+, "busy_seconds": .*, "parameters"/"seconds": #, "parameters"/; s/"device": "[^"]*"/"device": "#"/'
> {"schema": "gpufilter", "schema_version": 4, "program": "0.1.0", "command": "axis-sum", "files": ["samples/ramp.pfm"], "image": {"width": 1024, "height": 4, "channels": 1, "type": "f32", "alpha": false}, "backend": "cpu", "device": "#", "bytes_in": 16399, "bytes_out": 0, "seconds": #, "parameters": {"axis": "x", "mean": false}, "result": {"sums": {"y": [0, 1, 2, 3], "grey": [9833.759999893606, 9833.759999893606, 9833.759999893606, 9833.759999893606]}, "totals": {"channel": ["grey"], "sum": [39335.03999957442], "mean": [9.6032812498961]}}}
$ gpufilter axis-sum --alpha none samples/cutout.png | tail -n 5
> channel       sum                mean
> r        25774501  111.86849392361111
> g        17358324   75.33994791666667
> b        18344649   79.62087239583333
> data     29351916        127.39546875
# The same for every backend, number of threads and strip height.
$ for axis in x y; do for image in scene.png cutout.png gradient16.png ramp.pfm; do gpufilter axis-sum -a $axis --csv samples/$image >want; for options in "-b golden" "-j 1" "-j 5" "--rows-per-strip 1" "--rows-per-strip 37" "--simd portable"; do gpufilter axis-sum -a $axis $options --csv samples/$image | cmp - want; done; done; done
# dot: an image with itself, and with another image.
$ gpufilter dot samples/scene.png samples/scene.png
> samples/scene.png, samples/scene.png: 768x512 RGB u8, by cpu
> 
> channel          a.b          a.a          b.b  cosine  mse  psnr
> r         9912117178   9912117178   9912117178       1    0   inf
> g         8127947178   8127947178   8127947178       1    0   inf
> b         6153405085   6153405085   6153405085       1    0   inf
> total    24193469441  24193469441  24193469441       1    0   inf
$ gpufilter smooth -k samples/scene.png s.png; gpufilter dot samples/scene.png s.png
> samples/scene.png, s.png: 768x512 RGB u8, by cpu
> 
> channel          a.b          a.a          b.b              cosine
> r         9820654756   9912117178   9807406932  0.9960476890920682
> g         8040898654   8127947178   8029570057  0.9953320903043417
> b         6048551320   6153405085   6036238747  0.9924540593193885
> total    23910104730  24193469441  23873215736  0.9948942958110617
> 
> channel                 mse                psnr
> r         198.9100087483724  25.144237243758155
> g        192.56573232014975  25.285013552775307
> b        235.34442138671875   24.41376452636506
> total    208.94005415174695   24.93058657940637
# Lines are at most as long as the terminal is wide, or 80 columns, for any size of the numbers.
$ for type in u16le u16be f32le f32be; do size=$((6000 * 4 * (${type:1:2} / 8))); head -c $size samples/scene.png >x.raw; tail -c $size samples/scene.png >y.raw; gpufilter dot --raw 100x60x4:$type x.raw y.raw; gpufilter axis-sum --raw 100x60x4:$type --axis y x.raw; done | awk '{ lines++ } length > 80; END { print lines " lines" }'
> 686 lines
$ for width in 44 150; do python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' sh -c "stty cols $width; NO_COLOR=1 gpufilter dot samples/scene.png s.png" | tr -d '\r'; done
> samples/scene.png, s.png: 768x512 RGB u8, by cpu
> 
> channel          a.b          a.a
> r         9820654756   9912117178
> g         8040898654   8127947178
> b         6048551320   6153405085
> total    23910104730  24193469441
> 
> channel          b.b              cosine
> r         9807406932  0.9960476890920682
> g         8029570057  0.9953320903043417
> b         6036238747  0.9924540593193885
> total    23873215736  0.9948942958110617
> 
> channel                 mse
> r         198.9100087483724
> g        192.56573232014975
> b        235.34442138671875
> total    208.94005415174695
> 
> channel                psnr
> r        25.144237243758155
> g        25.285013552775307
> b         24.41376452636506
> total     24.93058657940637
> samples/scene.png, s.png: 768x512 RGB u8, by cpu
> 
> channel          a.b          a.a          b.b              cosine                 mse                psnr
> r         9820654756   9912117178   9807406932  0.9960476890920682   198.9100087483724  25.144237243758155
> g         8040898654   8127947178   8029570057  0.9953320903043417  192.56573232014975  25.285013552775307
> b         6048551320   6153405085   6036238747  0.9924540593193885  235.34442138671875   24.41376452636506
> total    23910104730  24193469441  23873215736  0.9948942958110617  208.94005415174695   24.93058657940637
$ gpufilter dot --json samples/gradient16.png samples/gradient16.png | sed 's/.*"result"//'
> : {"products": {"channel": ["grey"], "a.b": [390803183006364], "a.a": [390803183006364], "b.b": [390803183006364], "cosine": [1], "mse": [0], "psnr": ["inf"]}}}
$ gpufilter dot samples/scene.png - <s.png | tail -n 1
> total    208.94005415174695   24.93058657940637
# compare: exit code 0: equal, 1: different, 2: error.
$ gpufilter compare samples/scene.png samples/scene.png
> samples/scene.png, samples/scene.png: 768x512 RGB u8, by cpu
> 
> same: 1179648 samples
$ gpufilter compare samples/scene.png s.png
> samples/scene.png, s.png: 768x512 RGB u8, by cpu
> 
> different: 1113212 of 1179648 samples, largest difference 171; first at x 0, y 0, channel r: 132 and 130
[1]
$ gpufilter compare -q samples/scene.png s.png
[1]
$ gpufilter compare --json samples/scene.png s.png | sed -E 's/.*"parameters"/"parameters"/'
> "parameters": {"tolerance": null, "diff": null}, "passed": false, "result": {"comparison": {"samples": 1179648, "differing": 1113212, "largest": 171, "x": 0, "y": 0, "channel": "r", "first": 132, "second": 130}}}
$ for last in 0 200; do printf "Pf\\n1 1\\n-1\\n\\0\\0\\0\\$last" >zero$last.pfm; done; gpufilter compare --json zero200.pfm zero0.pfm | grep -o '"x".*'
> "x": 0, "y": 0, "channel": "grey", "first": -0.0, "second": 0}}}
$ gpufilter hist --json --bins 1 --range -0.0,2 zero200.pfm | sed -E 's/.*"parameters"/"parameters"/'
> "parameters": {"bins": 1, "range": [-0.0, 2], "channel": "luma", "per-row": false, "statistics": false, "extract": null, "out": null, "mask": null}, "result": {"bins": {"bin": [0], "from": [0], "to": [2], "grey": [1]}, "totals": {"channel": ["grey"], "samples": [1], "nan": [0], "below": [0], "above": [0]}}}
$ gpufilter compare --csv samples/scene.png s.png
> samples,differing,largest,x,y,channel,first,second
> 1179648,1113212,171,0,0,r,132,130
[1]
$ gpufilter compare samples/scene.png samples/page.png
! gpufilter: samples/page.png: is 850x1100 grey u8, but samples/scene.png is 768x512 RGB u8; both must have the same size, channels and type
[2]
$ gpufilter compare samples/scene.png absent.png
! gpufilter: absent.png: cannot open: No such file or directory
[2]
$ gpufilter compare samples/scene.png
! gpufilter: compare: expected A B, got 1 operand; see 'gpufilter compare --help'
[2]
$ gpufilter compare - - <s.png
! gpufilter: compare: standard input can be read only once; name one of the files
[2]
$ gpufilter compare samples/scene.png samples/scene.png >/dev/full
! gpufilter: standard output: cannot write: No space left on device
[2]
# --diff: the brightness is proportional to the difference, from dark red over yellow to white; the rest is dark.
$ { printf 'P5\n3 1\n255\n'; printf '\100\100\100'; } >a.pgm; { printf 'P5\n3 1\n255\n'; printf '\100\101\377'; } >b.pgm; gpufilter compare --diff d.ppm a.pgm b.pgm; tail -c 9 d.ppm | od -An -tu1
> a.pgm, b.pgm: 3x1 grey u8, by cpu
> 
> different: 2 of 3 samples, largest difference 191; first at x 1, y 0, channel grey: 64 and 65
>   16  16  16  98   0   0 255 255  87
$ gpufilter compare --diff d.ppm a.pgm b.pgm
! gpufilter: d.ppm: already exists; use --force to replace it
[2]
# --tolerance: the largest difference that counts as equal.
$ for tolerance in 0 1 190.5 191; do gpufilter compare --tolerance $tolerance a.pgm b.pgm | tail -n 1; done; gpufilter compare -q --tolerance 191 a.pgm b.pgm && gpufilter compare --json --tolerance 191 a.pgm b.pgm | grep -o '"parameters.*'; gpufilter compare --csv --tolerance 1 a.pgm b.pgm
> different: 2 of 3 samples, largest difference 191; first at x 1, y 0, channel grey: 64 and 65
> different: 1 of 3 samples, largest difference 191; first at x 2, y 0, channel grey: 64 and 255
> different: 1 of 3 samples, largest difference 191; first at x 2, y 0, channel grey: 64 and 255
> same within the tolerance: 3 samples, largest difference 191
> "parameters": {"tolerance": 191, "diff": null}, "passed": true, "result": {"comparison": {"samples": 3, "differing": 0, "largest": 191, "x": null, "y": null, "channel": null, "first": null, "second": null}}}
> samples,differing,largest,x,y,channel,first,second
> 3,1,191,2,0,grey,64,255
[1]
$ gpufilter compare --tolerance -1 a.pgm b.pgm
! gpufilter: --tolerance '-1': must be a number from 0 to 1000000000
[2]
# normalize reads a file twice and buffers a pipe; the pixels are the same.
$ gpufilter normalize samples/scene.png n.png; cat samples/scene.png | gpufilter normalize - - | cmp - n.png; gpufilter normalize - - <samples/scene.png | cmp - n.png
$ gpufilter axis-sum --csv n.png >/dev/null; gpufilter axis-sum n.png | tail -n 4
> channel       sum                mean
> r        50140524  127.51394653320312
> g        50133544  127.49619547526042
> b        50114895  127.44876861572266
$ cat samples/scene.png | gpufilter normalize --max-memory 100K - n2.png
! gpufilter: standard input: 1179648 bytes for an image from a pipe that is read twice are over the limit of 102400; raise it with --max-memory
[1]
$ gpufilter normalize samples/ramp.pfm n.pfm; gpufilter axis-sum --json n.pfm | sed 's/.*"totals"//'
> : {"channel": ["grey"], "sum": [4096.00009797886], "mean": [1.0000000239206202]}}}
$ for options in "-b golden" "-j 1" "--rows-per-strip 1" "--simd portable"; do gpufilter normalize $options samples/scene.png - | cmp - n.png; done
# Image filters also report as JSON.
$ gpufilter smooth --json -k --radius 3 samples/page.png p.png | sed -E 's/"seconds": [0-9.]+, "busy_seconds": .*, "parameters"/"seconds": #, "parameters"/; s/"device": "[^"]*"/"device": "#"/'
> {"schema": "gpufilter", "schema_version": 4, "program": "0.1.0", "command": "smooth", "files": ["samples/page.png"], "output": "p.png", "image": {"width": 850, "height": 1100, "channels": 1, "type": "u8", "alpha": false}, "backend": "cpu", "device": "#", "brightness": 1, "clipped": 0, "bytes_in": 517277, "bytes_out": 278855, "seconds": #, "parameters": {"gain": 1, "radius": 3, "weight": 0.6, "stages": ["enhance", "blur", "smooth"], "axis": "x", "tile": 0, "keep-brightness": true}}
$ gpufilter smooth --csv samples/page.png q.png
! gpufilter: --csv: unknown option of smooth (it is an option of axis-sum); see 'gpufilter smooth --help'
[2]
$ gpufilter smooth --json samples/page.png - | head -c 4
! gpufilter: --json: standard output is already used for data; write the data to a file
$ gpufilter dot --plot p.svg samples/scene.png s.png
! gpufilter: --plot: unknown option of dot (it is an option of axis-sum); see 'gpufilter dot --help'
[2]
$ ls -A | grep -E 'tmp|n2|q.png'
[1]
