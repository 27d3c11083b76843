# --depth. A larger type than that of the input: the input is converted first.
$ copy() { gpufilter smooth --stages enhance --gain 1 -f "$@"; }; for to in 16:u16 f32:f32; do copy --depth ${to%:*} samples/scene.png copy.raw; wc -c <copy.raw; for backend in golden cpu; do for filter in "smooth -k" "smooth --axis xy" normalize; do gpufilter $filter -b $backend --depth ${to%:*} samples/scene.png a.raw -f; gpufilter $filter -b $backend --raw 768x512x3:${to#*:} copy.raw b.raw -f; cmp a.raw b.raw; done; done; done
> 2359296
> 4718592
! gpufilter: samples/scene.png: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
! gpufilter: copy.raw: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
! gpufilter: copy.raw: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
$ gpufilter smooth -k --depth 16 samples/scene.png a.png; gpufilter info a.png; gpufilter smooth --depth 16 - - <samples/scene.png -k | cmp - a.png; for rows in 1 7; do gpufilter smooth --depth 16 -k --rows-per-strip $rows samples/scene.png - | cmp - a.png; done; gpufilter smooth --depth 16 -k --verify samples/scene.png - | cmp - a.png
> a.png: PNG, 768x512 RGB u16 (16-bit RGB), 2.4 MB of pixels
# A smaller type: the image is converted when it is written.
$ copy() { gpufilter smooth --stages enhance --gain 1 -f "$@"; }; for backend in golden cpu; do gpufilter smooth -b $backend samples/gradient16.png --depth 8 a8.png -f; gpufilter smooth samples/gradient16.png b.png -f; copy --depth 8 b.png b8.png -q; cmp a8.png b8.png; done; gpufilter smooth -q --depth 8 --verify samples/gradient16.png v8.png; cmp v8.png a8.png; gpufilter info a8.png
> a8.png: PNG, 640x480 grey u8 (8-bit grey), 307 kB of pixels
! gpufilter: samples/gradient16.png: bits per sample dropped: the output does not store this; --strip suppresses this warning
! gpufilter: samples/gradient16.png: brightness x1.452, 24.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.452, 24.1 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: bits per sample dropped: the output does not store this; --strip suppresses this warning
! gpufilter: samples/gradient16.png: brightness x1.452, 24.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.452, 24.1 % of samples clipped; --keep-brightness avoids it
$ for depth in 8 16; do gpufilter smooth --depth $depth --strip --verify samples/ramp.pfm ramp$depth.png; gpufilter info ramp$depth.png; done
> ramp8.png: PNG, 1024x4 grey u8 (8-bit grey), 4.1 kB of pixels
> ramp16.png: PNG, 1024x4 grey u16 (16-bit grey), 8.2 kB of pixels
! gpufilter: samples/ramp.pfm: --depth: 4096 f32 samples outside 0..1 clipped
! gpufilter: samples/ramp.pfm: brightness x1.452, 100.0 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/ramp.pfm: --depth: 4096 f32 samples outside 0..1 clipped
! gpufilter: samples/ramp.pfm: brightness x1.452, 100.0 % of samples clipped; --keep-brightness avoids it
# The type of the input, and no option: the same file.
$ gpufilter smooth -k samples/scene.png a.png -f; gpufilter smooth -k --depth 8 samples/scene.png - | cmp - a.png; gpufilter smooth -k --depth input samples/scene.png - | cmp - a.png
# Images that a filter draws are converted when they are written.
$ gpufilter hist -q samples/scene.png -n 8 -x 3 --mask m8.png; gpufilter hist -q samples/scene.png -n 8 -x 3 --mask m16.png --depth 16; gpufilter hist -q samples/gradient16.png -n 8 -x 3 --mask mb.png --depth 8 -b golden; gpufilter info m16.png mb.png; gpufilter smooth --stages enhance --gain 1 --depth 8 m16.png -q - | cmp - m8.png; gpufilter hist samples/scene.png --depth 16
> m16.png: PNG, 768x512 RGBA u16 (16-bit RGB and alpha), 3.1 MB of pixels
> mb.png: PNG, 640x480 grey+alpha u8 (8-bit grey and alpha), 614 kB of pixels
! gpufilter: --depth: requires --mask
[2]
$ gpufilter compare samples/scene.png m16.png; gpufilter compare -q a.png samples/scene.png --diff d.png; gpufilter compare -q a.png samples/scene.png --diff d16.png --depth 16 --json | grep -o dropped; gpufilter info d16.png
> d16.png: PNG, 768x512 RGB u16 (16-bit RGB), 2.4 MB of pixels
! gpufilter: m16.png: is 768x512 RGBA u16, but samples/scene.png is 768x512 RGB u8; both must have the same size, channels and type
# Lost bits are reported, in one line.
$ gpufilter smooth --depth 8 --json samples/gradient16.png j.png | grep -o '"dropped[^]]*]'; gpufilter smooth --depth 8 --json samples/gradient16.png j.png -f --strip | grep -c dropped
> "dropped_metadata": ["depth"]
> 0
! gpufilter: samples/gradient16.png: bits per sample dropped: the output does not store this; --strip suppresses this warning
! gpufilter: samples/gradient16.png: brightness x1.452, 24.2 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.452, 24.2 % of samples clipped; --keep-brightness avoids it
[1]
$ cp samples/gradient16.png g.png; gpufilter smooth --depth 8 -O o samples/gradient16.png g.png samples/scene.png 2>&1 | tail -n 1; gpufilter info o/g.png
> gpufilter: 2 files: bits per sample dropped: the output does not store this; --strip suppresses this warning
> o/g.png: PNG, 640x480 grey u8 (8-bit grey), 307 kB of pixels
# Formats that cannot store the type.
$ gpufilter smooth --depth f32 samples/scene.png f.png; gpufilter smooth samples/gradient16.png f.jpg; gpufilter smooth samples/scene.png f.pfm; gpufilter smooth -q samples/gradient16.png --depth 8 f.jpg; gpufilter smooth samples/scene.png --depth f32 f.pfm; gpufilter info f.jpg f.pfm; gpufilter smooth --depth 12 samples/scene.png f.png
> f.jpg: JPG, 640x480 grey u8 (8-bit grey, lossy), 307 kB of pixels
> f.pfm: PFM, 768x512 RGB f32 (32-bit float, little-endian, scale 1), 4.7 MB of pixels
! gpufilter: f.png: PNG does not support f32 samples; write .tif or give --depth 16
! gpufilter: f.jpg: JPEG supports only u8 samples, and this image is u16; write .png or give --depth 8
! gpufilter: f.pfm: PFM supports only f32 samples, and this image is u8; write .png or give --depth f32
! gpufilter: --depth '12': must be input, 8, 16 or f32
[2]
# --crop: the part is the image. The parts here are made by the filter that changes nothing.
$ copy() { gpufilter smooth --stages enhance --gain 1 -f "$@"; }; touch x.csv; for image in scene.png:100,50,301,207 gradient16.png:0,479,640,1 cutout.png:479,0,1,480 ramp.pfm:3,1,1000,2; do file=samples/${image%:*} crop=${image#*:} end=pam; [ $file = samples/ramp.pfm ] && end=pfm; copy --crop $crop $file part.$end; for backend in golden cpu; do for filter in "smooth -r 9" "smooth --axis xy --tile 16" "smooth --axis y --depth f32 --format raw" normalize; do gpufilter $filter -b $backend --crop $crop $file a.$end -f; gpufilter $filter -b $backend part.$end b.$end -f; cmp a.$end b.$end; done; for filter in axis-sum "axis-sum --axis y --alpha none" "hist -n 9 --per-row" "hist -n 9 -x 2,3 --channel all --out x.csv -f" dot compare; do [ "$filter" = dot -o "$filter" = compare ] && second=same || second=; gpufilter $filter -b $backend --json --crop $crop $file ${second:+samples/${image%:*}} | grep -o '"result.*' >a.txt; cp x.csv y.csv 2>/dev/null; gpufilter $filter -b $backend --json part.$end ${second:+part.$end} | grep -o '"result.*' | cmp - a.txt; cmp x.csv y.csv; done; done; done
! gpufilter: samples/scene.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/scene.png: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x2.108, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/cutout.png: brightness x1.1, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.1, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/cutout.png: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/cutout.png: brightness x1.1, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.1, clipped samples not counted; --keep-brightness avoids it
! gpufilter: samples/cutout.png: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
! gpufilter: part.pam: brightness x1.597, clipped samples not counted; --keep-brightness avoids it
$ gpufilter smooth --crop 100,50,301,207 samples/scene.png a.png -f; gpufilter info a.png; gpufilter smooth --crop 100,50,301,207 - - <samples/scene.png | cmp - a.png; gpufilter smooth -q --crop 100,50,301,207 --verify --rows-per-strip 5 --axis y samples/scene.png y.png; gpufilter smooth --stages enhance --gain 1 samples/scene.png s.ppm; cat s.ppm | gpufilter smooth --crop 100,50,301,207 - - | cmp - a.png; gpufilter smooth --crop 100,50,301,207 s.ppm - | cmp - a.png; gpufilter smooth -q -f --crop 100,50,301,207 s.ppm samples/scene.png -O crops; cmp crops/scene.png a.png
> a.png: PNG, 301x207 RGB u8 (8-bit RGB), 187 kB of pixels
! gpufilter: samples/scene.png: brightness x1.452, 57.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: standard input: brightness x1.452, 57.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: standard input: brightness x1.452, 57.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: s.ppm: brightness x1.452, 57.7 % of samples clipped; --keep-brightness avoids it
# Two images of different sizes have parts of the same size. An image drawn has the size of the part.
$ gpufilter compare --crop 9,8,100,90 s.ppm samples/scene.png; gpufilter compare -q --crop 0,0,300,200 a.png s.ppm --diff d.png -f; gpufilter info d.png; gpufilter hist -q --crop 1,2,30,40 s.ppm -n 4 -x 1 --mask k.png; gpufilter info k.png
> s.ppm, samples/scene.png: 100x90 RGB u8, by cpu
> 
> same: 27000 samples
> d.png: PNG, 300x200 RGB u8 (8-bit RGB), 180 kB of pixels
> k.png: PNG, 30x40 RGBA u8 (8-bit RGB and alpha), 4.8 kB of pixels
$ gpufilter smooth --crop 700,0,100,10 samples/scene.png n.png; gpufilter dot --crop 0,0,700,500 a.png samples/scene.png; gpufilter smooth -q --crop 0,0,700,500 -O none samples/scene.png a.png; ls none n.png
> none:
> scene.png
! gpufilter: samples/scene.png: --crop 700,0,100,10 is not inside the image of 768x512 pixels; correct it
! gpufilter: a.png: --crop 0,0,700,500 is not inside the image of 301x207 pixels; correct it
! gpufilter: a.png: --crop 0,0,700,500 is not inside the image of 301x207 pixels; correct it
! ls: cannot access 'n.png': No such file or directory
[2]
$ for crop in 1,2,3 1,2,3,4,5 a,0,1,1 0,0,0,1; do gpufilter hist --crop $crop samples/scene.png; done
! gpufilter: --crop '1,2,3': must be X,Y,WIDTH,HEIGHT in pixels, such as 100,50,640,480
! gpufilter: --crop '1,2,3,4,5': must be X,Y,WIDTH,HEIGHT in pixels, such as 100,50,640,480
! gpufilter: --crop 'a,0,1,1': must be X,Y,WIDTH,HEIGHT in pixels, such as 100,50,640,480
! gpufilter: --crop '0,0,0,1': width and height must be at least 1
[2]
# --linear: sRGB becomes linear light, and sRGB again. A filter that changes nothing changes no code.
$ copy() { gpufilter smooth --stages enhance --gain 1 -f "$@"; }; for image in scene.png gradient16.png cutout.png; do gpufilter smooth --stages enhance --gain 1 samples/$image a.pam -f; for backend in golden cpu; do copy -b $backend --linear samples/$image b.pam; cmp a.pam b.pam; done; copy --linear --verify samples/$image v.png; copy v.png v.pam; cmp a.pam v.pam; done
$ for backend in golden cpu; do for filter in "smooth -k" "smooth --axis xy -k" normalize; do gpufilter $filter -b $backend --linear samples/scene.png a.png -f; gpufilter smooth --stages enhance --gain 1 --linear --depth f32 samples/scene.png light.pfm -f; gpufilter $filter --linear --depth 8 -f light.pfm b.png -q; cmp a.png b.png; gpufilter $filter -f samples/scene.png c.png; cmp -s a.png c.png || echo differs; done; done | uniq -c
>       6 differs
$ gpufilter smooth -k --linear --depth 16 samples/scene.png deep.png; gpufilter info deep.png; gpufilter smooth -k --linear samples/ramp.pfm r.pfm; gpufilter smooth -k samples/ramp.pfm - --format pfm | cmp - r.pfm; gpufilter smooth -k --linear samples/scene.png samples/gradient16.png -O linear -q; gpufilter smooth -k --linear samples/scene.png - | cmp - linear/scene.png
> deep.png: PNG, 768x512 RGB u16 (16-bit RGB), 2.4 MB of pixels
# Only filters that produce an image, and only sRGB.
$ gpufilter hist --linear samples/scene.png; gpufilter hist --linear -n 9 -x 1 --mask lm.png samples/scene.png
! gpufilter: --linear: unknown option of hist (it is an option of smooth); see 'gpufilter hist --help'
! gpufilter: --linear: unknown option of hist (it is an option of smooth); see 'gpufilter hist --help'
[2]
$ chunk() { python3 -c 'import struct, sys, zlib; png = open("samples/scene.png", "rb").read(); name, data = sys.argv[1].encode(), eval(sys.argv[2]); data = name + data; sys.stdout.buffer.write(png[:33] + struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data)) + png[33:])' "$1" "$2"; }; chunk iCCP 'b"p\0\0" + zlib.compress(bytes(131) + b"\1desc" + struct.pack(">II", 144, 30) + b"desc" + bytes(8) + b"Display P3" + bytes(8))' >p3.png; chunk iCCP 'b"p\0\0" + zlib.compress(bytes(131) + b"\1desc" + struct.pack(">II", 144, 30) + b"desc" + bytes(7) + b"\12sRGB 2014 " + bytes(8))' >icc.png; chunk gAMA 'struct.pack(">I", 100000)' >gamma.png; chunk sRGB 'b"\0"' >srgb.png; for image in p3 icc gamma srgb; do gpufilter smooth --linear --strip -k $image.png l.png -f && cmp l.png linear/scene.png; done; gpufilter smooth --linear -k --depth f32 p3.png l.pfm
! gpufilter: p3.png: its ICC profile is not sRGB; convert it to sRGB first or remove --linear
! gpufilter: gamma.png: its gamma is not sRGB; convert it to sRGB first or remove --linear
! gpufilter: p3.png: its ICC profile is not sRGB; convert it to sRGB first or remove --linear
[1]
# --autorotate turns the picture as its EXIF orientation says, before --crop.
$ turn() { python3 -c 'import struct, sys, zlib; png = open(sys.argv[2], "rb").read(); data = b"eXIfMM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0" + bytes([int(sys.argv[1])]) + bytes(6); sys.stdout.buffer.write(png[:33] + struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data)) + png[33:])' $1 $2; }; gpufilter smooth -q --stages enhance --gain 1 --crop 100,90,205,103 samples/scene.png part.png -f; for side in 1 2 3 4 5 6 7 8; do turn $side part.png >turned.png; gpufilter smooth --stages enhance --gain 1 --autorotate -f turned.png up.png; gpufilter smooth -q --stages enhance --gain 1 up.png up.pam -f; gpufilter info up.pam | cut -d, -f2; for backend in golden cpu; do for filter in smooth normalize; do gpufilter $filter -q -b $backend --autorotate turned.png a.pam -f; gpufilter $filter -q -b $backend up.pam b.pam -f; cmp a.pam b.pam; done; gpufilter hist -b $backend --json -n 7 --autorotate --crop 3,2,90,80 turned.png | grep -o '"result.*' >a.txt; gpufilter hist -b $backend --json -n 7 --crop 3,2,90,80 up.pam | grep -o '"result.*' | cmp - a.txt; done; done
>  205x103 RGB u8 (8-bit binary)
>  205x103 RGB u8 (8-bit binary)
>  205x103 RGB u8 (8-bit binary)
>  205x103 RGB u8 (8-bit binary)
>  103x205 RGB u8 (8-bit binary)
>  103x205 RGB u8 (8-bit binary)
>  103x205 RGB u8 (8-bit binary)
>  103x205 RGB u8 (8-bit binary)
$ turn() { python3 -c 'import struct, sys, zlib; png = open(sys.argv[2], "rb").read(); data = b"eXIfMM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0" + bytes([int(sys.argv[1])]) + bytes(6); sys.stdout.buffer.write(png[:33] + struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data)) + png[33:])' $1 $2; }; turn 6 samples/scene.png >turned.png; gpufilter smooth --autorotate turned.png up.png -f --verify; gpufilter smooth --stages enhance --gain 1 --autorotate up.png - | cmp - up.png; grep -ac eXIf up.png; gpufilter smooth --autorotate turned.png up.ppm; gpufilter smooth --autorotate - - <turned.png | cmp - up.png; gpufilter normalize --autorotate - - <turned.png >n.png; gpufilter normalize --autorotate turned.png - | cmp - n.png; gpufilter compare -q --autorotate turned.png turned.png; gpufilter smooth -q --autorotate -O turned turned.png samples/page.png; cmp turned/turned.png up.png; gpufilter smooth --autorotate samples/ramp.pfm - --format pfm | cmp - <(gpufilter smooth samples/ramp.pfm - --format pfm); gpufilter smooth --autorotate --max-memory 1M turned.png no.png
> 1
! gpufilter: turned.png: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: turned.png: EXIF data dropped: the output does not store this; --strip suppresses this warning
! gpufilter: turned.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
! gpufilter: standard input: brightness x1.452, 24.7 % of samples clipped; --keep-brightness avoids it
! gpufilter: turned.png: 1179648 bytes for an image to turn are over the limit of 1048576; raise it with --max-memory
[1]
# f32 samples outside 0..1 are counted when they are stored as integers, with NaN; 1 and 0 are inside. So are they in a batch.
$ python3 -c "import struct, sys; sys.stdout.buffer.write(b'Pf\n3 2\n-1.0\n' + struct.pack('<6f', 0, 1, 1.5, -0.25, float('nan'), 0.5))" >wide.pfm; for depth in 8 16 f32; do for backend in golden cpu; do gpufilter smooth -b $backend --stages enhance --gain 1 --strip --depth $depth wide.pfm wide.tif -f; done; done; gpufilter smooth -q --json --stages enhance --gain 1 --depth 8 wide.pfm wide.tif -f | grep -o '"notes": [^]]*]'
> "notes": ["--depth: 3 f32 samples outside 0..1 clipped"]
! gpufilter: wide.pfm: --depth: 3 f32 samples outside 0..1 clipped
! gpufilter: wide.pfm: --depth: 3 f32 samples outside 0..1 clipped
! gpufilter: wide.pfm: --depth: 3 f32 samples outside 0..1 clipped
! gpufilter: wide.pfm: --depth: 3 f32 samples outside 0..1 clipped
# Also with --linear and --premultiply, but not what a filter computes for integers.
$ for file in wide.pfm samples/card.png; do gpufilter smooth -f --strip --stages enhance --gain 1.2 --linear --depth 8 $file wide.tif; done
! gpufilter: wide.pfm: --depth: 4 f32 samples outside 0..1 clipped
! gpufilter: wide.pfm: brightness x1.2, 33.3 % of samples clipped; --keep-brightness and --gain 1 avoid it
! gpufilter: samples/card.png: brightness x1.2, 1.0 % of samples clipped; --keep-brightness and --gain 1 avoid it
$ printf '\0\0\200\77\0\0\0\77\0\0\0\100\0\0\200\77' | gpufilter smooth --strip --stages enhance --gain 1 --raw 2x1x2:f32le --alpha last --premultiply on --depth 8 - wide.tif -f
! gpufilter: standard input: --depth: 1 f32 samples outside 0..1 clipped
$ gpufilter smooth --stages enhance --gain 1 --strip --depth 8 --format png -j 1 wide.pfm samples/ramp.pfm -O wide 2>&1 | sed 1d
> gpufilter: samples/ramp.pfm: --depth: 4052 f32 samples outside 0..1 clipped (there are notes about 2 files; --json lists them)
# The count of a file is that of all its pages.
$ cat wide.pfm wide.pfm >wides.pfm; gpufilter smooth -q --json --stages enhance --gain 1 --strip --page all --depth 8 wides.pfm wides.tif | grep -o '"notes": [^]]*]'
> "notes": ["--depth: 6 f32 samples outside 0..1 clipped"]
# A quality for an output that is not a JPEG has no effect: a note, and one for a batch.
$ for name in q.png q.tif q.jpg; do gpufilter smooth -k -Q 80 samples/page.png $name; done; gpufilter smooth -q -k -Q 80 --json samples/page.png q.png -f | grep -o '"notes": [^]]*]'; gpufilter smooth -k -Q 80 samples/page.png samples/card.png q.jpg -j 1 -O q 2>&1 | sed 1d
> "notes": ["--quality has no effect on PNG"]
> gpufilter: samples/card.png: --quality has no effect on PNG (there are notes about 2 files; --json lists them)
! gpufilter: samples/page.png: --quality has no effect on PNG
! gpufilter: samples/page.png: --quality has no effect on TIFF
# So have compressions of other formats.
$ gpufilter smooth -kc small --tiff-compression lzw samples/page.png e.pgm; for name in e.png e.tif; do gpufilter smooth -kc small --tiff-compression lzw samples/page.png $name; done
! gpufilter: samples/page.png: --compression has no effect on PGM
! gpufilter: samples/page.png: --tiff-compression has no effect on PGM
! gpufilter: samples/page.png: --tiff-compression has no effect on PNG
! gpufilter: samples/page.png: --compression has no effect on TIFF
# --fast lets the decoder of a JPEG scale. All backends read the same pixels, also of a pipe and a turned image.
$ turn() { python3 -c 'import struct, sys, zlib; png = open(sys.argv[2], "rb").read(); data = b"eXIfMM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0" + bytes([int(sys.argv[1])]) + bytes(6); sys.stdout.buffer.write(png[:33] + struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data)) + png[33:])' $1 $2; }; turn 6 samples/scene.png >t.png; gpufilter smooth -q t.png t.jpg; for size in width=192 width=193 height=33 fit=60x60 cover=30x60 exact=48x1; do set -- --${size%=*} ${size#*=} t.jpg; gpufilter resize --fast $* o.png -f; gpufilter info o.png | cut -d, -f2; for backend in '-b golden' '-b cpu -j 1' --verify; do gpufilter resize -q --fast $* - $backend | cmp - o.png; done; gpufilter resize -q --fast $* - <t.jpg | cmp - o.png; gpufilter resize -q $* full.png -f; gpufilter compare -q o.png full.png; echo $?; gpufilter dot o.png full.png --csv | awk -F, 'END { exit !($NF > 40) }' || echo other; done; gpufilter resize --fast --autorotate --width 60 t.jpg o.png -f; gpufilter info o.png
>  192x128 RGB u8 (8-bit RGB)
> 1
>  193x129 RGB u8 (8-bit RGB)
> 0
>  50x33 RGB u8 (8-bit RGB)
> 1
>  60x40 RGB u8 (8-bit RGB)
> 1
>  30x60 RGB u8 (8-bit RGB)
> 1
>  48x1 RGB u8 (8-bit RGB)
> 1
> o.png: PNG, 60x90 RGB u8 (8-bit RGB), 16 kB of pixels, orientation 1, metadata: eXIf
! gpufilter: t.jpg: --fast: 768x512 pixels decoded at a scale of 4/8
! gpufilter: t.jpg: --fast: 768x512 pixels decoded at a scale of 2/8
! gpufilter: t.jpg: --fast: 768x512 pixels decoded at a scale of 2/8
! gpufilter: t.jpg: --fast: 768x512 pixels decoded at a scale of 2/8
! gpufilter: t.jpg: --fast: 768x512 pixels decoded at a scale of 1/8
! gpufilter: t.jpg: --fast: 768x512 pixels decoded at a scale of 2/8
# --fast has no effect where a step needs all pixels, nor on second images. Batches scale each file.
$ gpufilter smooth -q samples/scene.png s.jpg; for options in --no-antialias --linear '--crop 0,0,700,500'; do gpufilter resize --fast --width 60 $options s.jpg - | cmp - <(gpufilter resize --width 60 $options s.jpg -); done; gpufilter resize --fast --width 60 samples/scene.png - | cmp - <(gpufilter resize --width 60 samples/scene.png -); for steps in 'hist ! resize fast width=60' 'linear ! resize fast width=60' 'resize fast width=60 ! write a.png ! input' 'resize fast width=60 ! write a.png ! input ! resize width=50' 'gaussian ! resize fast width=9'; do gpufilter run -f s.jpg ! $steps ! write b.png >log; done
$ gpufilter run -f s.jpg ! resize fast width=60 ! write a.png ! input ! resize fast width=100 ! write b.png; gpufilter resize -q --fast --width 100 s.jpg - | cmp - b.png; gpufilter resize -q --fast --width 60 s.jpg s60.png; gpufilter smooth -q --crop 0,0,192,128 s.jpg part.jpg; gpufilter run s.jpg ! resize fast scale=0.25 ! dot part.jpg | head -n 1; gpufilter resize -q --fast --width 60 s.jpg samples/scene.png --out-dir out --format png; cmp out/s.png s60.png
> s.jpg: 384x256 RGB u8, by cpu
! gpufilter: s.jpg: --fast: 768x512 pixels decoded at a scale of 4/8
! gpufilter: s.jpg: --fast: 768x512 pixels decoded at a scale of 4/8
