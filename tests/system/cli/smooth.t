# A picture in, a picture out; silent when it went well.
$ gpufilter smooth samples/scene.png out.png
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ head -c 8 out.png | od -An -c
>  211   P   N   G  \r  \n 032  \n
$ gpufilter smooth samples/scene.png out.png
! gpufilter: out.png: already exists; use --force to replace it
[1]
$ gpufilter smooth --force samples/scene.png out.png
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
# Options in any order, short and long, = or not, before and after the files.
$ gpufilter smooth samples/cutout.png -r3 -a xy --weight=0.5 a.pam -k
$ gpufilter smooth --keep-brightness --axis=xy --radius 3 -w 0.5 samples/cutout.png b.pam
$ cmp a.pam b.pam
$ cp samples/cutout.png ./-r.png; gpufilter smooth -k -- -r.png -o.pam; gpufilter smooth -k samples/cutout.png c.pam; cmp ./-o.pam c.pam
# Standard input and output.
$ gpufilter smooth - out2.png <samples/scene.png; cmp out.png out2.png
! gpufilter: standard input: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth samples/scene.png - | cmp - out.png
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ cat samples/scene.png | gpufilter smooth --format ppm - - | head -n 3 | strings | head -n 2
> 768 512
$ for backend in golden cpu; do gpufilter smooth --backend $backend --tile 256 --format pfm samples/ramp.pfm - | tail -c 4096 | od -An -tx4 -N 12; done
>  3fd54fe1 40155184 40599409
>  3fd54fe1 40155184 40599409
$ cat samples/ramp.pfm | gpufilter smooth --tile 256 --format pfm - - | tail -c 4096 | od -An -tx4 -N 12
>  3fd54fe1 40155184 40599409
# The response to one sample, and how far it moves the picture: what the help says.
$ python3 -c 'import struct, sys; sys.stdout.buffer.write(b"Pf\n15 1\n-1\n" + struct.pack("<15f", *[float(i == 7) for i in range(15)]))' >impulse.pfm
$ for weight in 0.6 1; do gpufilter smooth -k -w $weight impulse.pfm - --format pfm | tail -c 60 | python3 -c 'import struct, sys; h = struct.unpack("<15f", sys.stdin.buffer.read()); print(*("%.3g" % x for x in h[4:11]), "moves by %.2f" % sum((i - 7) * x for i, x in enumerate(h)))'; done
> 0.0909 0.145 0.2 0.2 0.2 0.109 0.0545 moves by -0.18
> 0.0667 0.133 0.2 0.2 0.2 0.133 0.0667 moves by 0.00
$ gpufilter smooth --help | tr -s ' \n' ' ' | grep -oE '0\.055 0\.109 0\.2 0\.2 0\.2 0\.145 0\.091|= 0\.18 pixels'
> 0.055 0.109 0.2 0.2 0.2 0.145 0.091
> = 0.18 pixels
# Every backend, thread count, SIMD level and strip height: the same bytes.
$ for backend in golden cpu auto; do gpufilter smooth --backend $backend samples/scene.png - | cmp - out.png; done
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ for threads in 1 2 7; do gpufilter smooth --threads $threads samples/scene.png - | cmp - out.png; done
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ for rows in 1 2 3 100 511 512 9999; do gpufilter smooth --rows-per-strip $rows samples/scene.png - | cmp - out.png; done
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ for size in 24K 100K 1G; do gpufilter smooth --max-memory $size samples/scene.png - | cmp - out.png; done
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth --axis y samples/scene.png y.png; for rows in 1 2 3 100 511; do gpufilter smooth --axis y --rows-per-strip $rows samples/scene.png - | cmp - y.png; done
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
$ for size in 18K 24K 48K 60K 100K 300K 2M; do gpufilter smooth --axis y --max-memory $size samples/scene.png - | cmp - y.png; done; gpufilter smooth --axis y --max-memory 12K samples/scene.png -
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: strips of 7 rows need more than 12288 bytes; raise --max-memory
[1]
# Conversions that lose nothing are made; the pixels are the same in every format.
$ for kind in ppm pam bmp tga; do gpufilter smooth samples/scene.png out.$kind; gpufilter smooth --stages enhance --gain 1 out.$kind - | cmp - out.png; done
! gpufilter: samples/scene.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth samples/gradient16.png g.pgm; gpufilter smooth samples/gradient16.png g.png; gpufilter smooth --stages enhance --gain 1 g.pgm - | cmp - g.png
! gpufilter: samples/gradient16.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.452, 24.1 % of samples clipped; --keep-brightness avoids it
# Clipped samples are counted where rows are encoded, the same by every backend; a terminal shows them.
$ for backend in golden cpu; do gpufilter smooth --json --backend $backend samples/scene.png bright.png --force | grep -o '"brightness.*"bytes_in'; done; gpufilter hist --bins 256 --channel all -x 255 --json bright.png | grep -o '"count": .[0-9]*' | tail -n 1
> "brightness": 1.4520001, "clipped": 295077, "bytes_in
> "brightness": 1.4520001, "clipped": 295077, "bytes_in
> "count": [295077
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ for option in "" -k "-g 3" "-k -g 3"; do gpufilter smooth --verbose $option samples/scene.png clip.png -f 2>&1 | sed -n 's/^  brightness/brightness/p'; done
> brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
> brightness x3.96, 87.3 % of samples clipped; --keep-brightness and --gain 1 avoid it
> brightness x3, 78.8 % of samples clipped; a lower --gain avoids it
$ gpufilter smooth --verbose samples/scene.png clip.ppm -f 2>&1 | sed -n 's/^  brightness/brightness/p'; gpufilter smooth --verbose samples/ramp.pfm clip.pfm -f 2>&1 | sed -n 's/^  brightness/brightness/p'; gpufilter smooth --json samples/scene.png clip.ppm -f | grep -o '"clipped": [a-z]*'
> brightness x1.452, clipped samples not counted; --keep-brightness avoids it
> brightness x1.452
> "clipped": null
! gpufilter: samples/scene.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ gpufilter smooth samples/{scene,page}.png -O clip 2>&1 | sed -n 2p
>   brightness x1.452, 55.2 % of samples clipped; --keep-brightness avoids it
$ python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' gpufilter smooth samples/scene.png clip.png -f | tr -d '\r' | sed -n 2p
>   brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth samples/scene.png out.jpg; head -c 3 out.jpg | od -An -tx1; gpufilter smooth --format jpeg samples/scene.png - | cmp - out.jpg
>  ff d8 ff
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
# What another library decodes, in a sandbox or without.
$ gpufilter smooth out.bmp a.png; gpufilter smooth --no-sandbox out.bmp - | cmp - a.png; gpufilter smooth out.jpg b.png; gpufilter smooth --no-sandbox --max-seconds 9 out.jpg - | cmp - b.png; head -c 700 out.jpg | gpufilter smooth - c.png
! gpufilter: out.bmp: brightness x1.452, 60.8 % of samples clipped; --keep-brightness avoids it
! gpufilter: out.bmp: brightness x1.452, 60.8 % of samples clipped; --keep-brightness avoids it
! gpufilter: out.jpg: brightness x1.452, 60.8 % of samples clipped; --keep-brightness avoids it
! gpufilter: out.jpg: brightness x1.452, 60.8 % of samples clipped; --keep-brightness avoids it
! gpufilter: standard input: the file ends too early; get a complete copy
[1]
# Metadata of a JPEG goes to PNG; what the format of the output does not store is reported.
$ { head -c 2 out.jpg; printf '\xff\xe2\0\x94ICC_PROFILE\0\1\1\0\0\0\x84'; head -c 12 /dev/zero; printf 'RGB '; head -c 16 /dev/zero; printf acsp; head -c 92 /dev/zero; printf '\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0'; tail -c +3 out.jpg; } >meta.jpg; gpufilter smooth meta.jpg meta.png; gpufilter smooth --strip meta.jpg bare.png; gpufilter info meta.jpg meta.png bare.png
> meta.jpg: JPG, 768x512 RGB u8 (8-bit YCbCr, chroma 1/1x1/1, lossy), 1.2 MB of pixels, orientation 6, metadata: EXIF ICC
> meta.png: PNG, 768x512 RGB u8 (8-bit RGB), 1.2 MB of pixels, orientation 6, metadata: eXIf iCCP
> bare.png: PNG, 768x512 RGB u8 (8-bit RGB), 1.2 MB of pixels
! gpufilter: meta.jpg: brightness x1.452, 60.8 % of samples clipped; --keep-brightness avoids it
! gpufilter: meta.jpg: brightness x1.452, 60.8 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth meta.jpg meta.bmp; gpufilter smooth -q meta.png - --format ppm | tail -c +16 | cmp - <(gpufilter smooth --strip meta.png - --format ppm | tail -c +16)
! gpufilter: meta.jpg: ICC profile, EXIF data, orientation dropped: the output does not store this; --strip suppresses this warning
! gpufilter: meta.jpg: brightness x1.452, 60.8 % of samples clipped; --keep-brightness avoids it
! gpufilter: meta.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ gpufilter smooth --json meta.jpg meta.ppm 2>/dev/null | grep -o '"dropped_metadata": [^]]*]'; gpufilter smooth --json --strip meta.jpg bare.ppm | grep -c dropped; gpufilter hist -q meta.jpg
> "dropped_metadata": ["icc", "exif", "orientation"]
> 0
! gpufilter: meta.jpg: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ cp meta.jpg turned.jpg; gpufilter smooth -O meta --format ppm meta.jpg bare.png 2>&1 | tail -n 1; gpufilter smooth -O meta --format ppm -f meta.jpg bare.png turned.jpg 2>&1 | tail -n 1; gpufilter smooth -q -O meta --format ppm -f meta.jpg turned.jpg
> gpufilter: meta.jpg: ICC profile, EXIF data, orientation dropped: the output does not store this; --strip suppresses this warning
> gpufilter: 2 files: ICC profile, EXIF data, orientation dropped: the output does not store this; --strip suppresses this warning
# A header with Windows line ends: its line feed is no sample. A comment may be long.
$ printf 'P5\r\n2 2\r\n255\r\nABCD' >crlf.pgm; gpufilter smooth --stages enhance --gain 1 --format pgm crlf.pgm - | tail -c 4; echo
> ABCD
$ printf 'P5\r\n2 2\r\n255\r\nABCD' | gpufilter smooth --stages enhance --gain 1 --format pgm - -
! gpufilter: standard input: its header ends in CR LF, and the LF may be part of the image; read it from a file, not from a pipe
[1]
$ printf 'P5\n2 2\n255\r\nABC' | gpufilter smooth --stages enhance --gain 1 --format pgm - - | tail -c 3; echo
> ABC
# What is held for the output is of --max-memory, too.
$ { printf 'Pf\n1000 100\n-1\n'; head -c 400000 /dev/zero; } >z.pfm; gpufilter smooth --max-memory 410K z.pfm - --format pfm | wc -c
> 400017
$ gpufilter smooth -b cpu --max-memory 392K z.pfm - --format pfm
! gpufilter: z.pfm: strips of 1 rows need more than 1408 bytes; raise --max-memory
[1]
$ { printf 'P7\n  #%0300d\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\nZ' 0; } | gpufilter smooth --stages enhance --gain 1 --format pgm - - | tail -c 1; echo
> Z
# One strip is enough for an image of one row.
$ { printf 'P5\n1000000 1\n255\n'; head -c 1000000 /dev/zero; } | gpufilter smooth --format pgm --max-memory 2100000 - - | wc -c
> 1000017
! gpufilter: standard input: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
# Input and output may be the same file, with --force; a link stays a link.
$ cp samples/scene.png same.png; gpufilter smooth --force same.png same.png; cmp same.png out.png
! gpufilter: same.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
$ cp samples/scene.png real.png; ln -s real.png link.png; gpufilter smooth --force link.png link.png; cmp real.png out.png; readlink link.png
> real.png
! gpufilter: link.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
# A pipe that does not block is waited for.
$ (sleep 0.2; cat samples/scene.png) | perl -e 'use Fcntl; fcntl(STDIN, F_SETFL, fcntl(STDIN, F_GETFL, 0) | O_NONBLOCK); exec @ARGV' gpufilter smooth - slow.png; cmp slow.png out.png
! gpufilter: standard input: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
# Devices are written to, never replaced.
$ gpufilter smooth samples/scene.png /dev/null --format png; test -c /dev/null
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
# What ran is told to whoever asks.
$ gpufilter smooth -v --threads 2 --simd portable samples/scene.png v.png 2>&1 | sed -E '/auto: expected/d; s/[0-9.]+ (s|MP)\b/# \1/g; /busy/s/[0-9.]+ %/# %/g; s/starting # %, //; s/: [a-z]+ is the bottleneck//'
> v.png: # s, # MP/s by cpu (2 threads, portable), 909 kB in, 560 kB out
>   brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
>   parameters: gain=1.1 radius=2 weight=0.6 stages=enhance,blur,smooth axis=x tile=0
>   768x512 RGB u8 in 16 strips of 32 rows
>   busy: decoding # %, computing # %, encoding # % of # s
$ gpufilter smooth -v --backend golden samples/scene.png w.png 2>&1 | sed -E 's/[0-9.]+ (s|MP)\b/# \1/g; /busy/s/[0-9.]+ %/# %/g; s/starting # %, //; s/: [a-z]+ is the bottleneck//'
> w.png: # s, # MP/s by golden (1 thread, scalar), 909 kB in, 560 kB out
>   brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
>   parameters: gain=1.1 radius=2 weight=0.6 stages=enhance,blur,smooth axis=x tile=0
>   768x512 RGB u8 in 1 strip of 512 rows
>   busy: decoding # %, computing # %, encoding # % of # s
# Something takes most of the time of a job whose parts come one after the other: here the filter, by far.
$ gpufilter smooth -v --backend golden --radius 100 --axis xy samples/page.png busy.pgm 2>&1 | grep -o 'computing is.*'
> computing is the bottleneck
$ gpufilter smooth --json --threads 2 samples/scene.png j.png | grep -o '"busy_seconds".*"parameters"' | sed -E 's/[0-9]+\.[0-9]+/#/g'
> "busy_seconds": {"starting": #, "decoding": #, "computing": #, "encoding": #}, "workers": {"starting": 1, "decoding": 1, "computing": 2, "encoding": 2}, "parameters"
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
# No device, no silent substitute: exit 3 and a reason.
$ CUDA_VISIBLE_DEVICES= gpufilter smooth --backend cuda samples/scene.png z.png 2>&1 | sed -E 's/(cuda: ).*/\1reason/'; exit ${PIPESTATUS[0]}
> gpufilter: cuda: reason
[3]
$ ls -A | grep -E 'tmp|z.png'
[1]
# Threads that write a PNG take no memory that the strips need.
$ { printf 'P5\n30000 216\n65535\n'; head -c 12960000 /dev/zero; } >wide.pgm; for threads in 1 8; do gpufilter smooth -f -q -b cpu -j $threads -a y -r 100 --max-memory 12M wide.pgm wide-$threads.png; done; cmp wide-1.png wide-8.png; gpufilter smooth -f -b cpu -j 8 -a y -r 100 --max-memory 11M wide.pgm wide.png
! gpufilter: wide.pgm: strips of 203 rows need more than 11534336 bytes; raise --max-memory
[1]
# What is on the disk before it appears.
$ for when in auto always never; do gpufilter smooth samples/page.png sync.png --force --sync $when && gpufilter smooth samples/page.png - | cmp - sync.png; gpufilter smooth samples/page.png -O sync/$when --sync $when -q; ls -A sync/$when; done
> page.png
> page.png
> page.png
! gpufilter: samples/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth samples/page.png sometimes.png --sync sometimes
! gpufilter: --sync 'sometimes': must be auto, always or never
[2]
# Golden beside it: the same file, and it is told.
$ gpufilter smooth -q -a xy samples/scene.png plain.png; gpufilter smooth -v --verify -a xy samples/scene.png checked.png 2>&1 | grep verified; cmp plain.png checked.png
>   verified: identical to golden
$ gpufilter smooth --json --verify samples/scene.png checked.pam --force | grep -o '"verified": [a-z]*'
> "verified": true
! gpufilter: samples/scene.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ gpufilter smooth -q --verify samples/scene.png samples/page.png --out-dir checked && ls checked
> page.png
> scene.png
$ ls -A checked
> page.png
> scene.png
