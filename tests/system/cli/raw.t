# A file whose format is given by --raw gives the same results as with a header.
$ gpufilter smooth -q samples/scene.png a.ppm; head -n 3 a.ppm | wc -c
> 15
$ gpufilter info --raw 768x512x3:u8+15 a.ppm
> a.ppm: RAW, 768x512 RGB u8 (8-bit raw, offset 15), 1.2 MB of pixels
$ gpufilter smooth -q a.ppm want.png; gpufilter smooth -q --raw 768x512x3:u8+15 a.ppm got.png; cmp want.png got.png
$ for filter in axis-sum "hist --bins 4" "hist --bins 9 --channel g"; do gpufilter $filter --csv a.ppm >want.csv; gpufilter $filter --csv --raw 768x512x3:u8+15 a.ppm | cmp - want.csv; done
$ gpufilter normalize -q a.ppm mean.ppm; gpufilter normalize -q --raw 768x512x3:u8+15 a.ppm got.ppm; cmp mean.ppm got.ppm
$ gpufilter smooth -q samples/gradient16.png b.pgm; gpufilter smooth b.pgm --axis y - >want.png; head -n 3 b.pgm | wc -c
> 17
! gpufilter: b.pgm: brightness x1.452, 49.7 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth --raw 640x480:u16be+17 --axis y b.pgm - | cmp - want.png
! gpufilter: b.pgm: brightness x1.452, 49.7 % of samples clipped; --keep-brightness avoids it
# The same through a pipe, and for a filter that reads the input twice.
$ cat b.pgm | gpufilter smooth --raw 640x480:u16be+17 --axis y - - | cmp - want.png
! gpufilter: standard input: brightness x1.452, 49.7 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth --raw 640x480:u16be+17 --axis y - - <b.pgm | cmp - want.png
! gpufilter: standard input: brightness x1.452, 49.7 % of samples clipped; --keep-brightness avoids it
$ cat a.ppm | gpufilter normalize --raw 768x512x3:u8+15 - - --format ppm | cmp - mean.ppm
# A .raw output consists of rows only, little-endian, and can be read again.
$ gpufilter smooth -q samples/gradient16.png c.raw; tail -c +18 b.pgm | dd conv=swab status=none | cmp - c.raw; gpufilter info --raw 640x480:u16 c.raw
> c.raw: RAW, 640x480 grey u16 (16-bit raw, little-endian), 614 kB of pixels
$ gpufilter smooth --format raw samples/gradient16.png - | cmp - c.raw; gpufilter smooth samples/gradient16.png --format raw d.dat -q; cmp c.raw d.dat
! gpufilter: samples/gradient16.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ gpufilter compare --raw 640x480:u16le c.raw d.dat
> c.raw, d.dat: 640x480 grey u16, by cpu
> 
> same: 307200 samples
$ gpufilter smooth -q samples/cutout.png rgba.raw; gpufilter smooth -q samples/ramp.pfm ramp.raw; wc -c rgba.raw ramp.raw | head -n 2
> 921600 rgba.raw
>  16384 ramp.raw
$ gpufilter smooth -q --stages enhance --gain 1 --raw 480x480x4:u8 --alpha last rgba.raw rgba.pam; gpufilter smooth samples/cutout.png - --format pam | cmp - rgba.pam
! gpufilter: samples/cutout.png: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ gpufilter hist --raw 1024x4:f32 --bins 2 --csv ramp.raw >got.csv; gpufilter smooth samples/ramp.pfm - --format pfm | gpufilter hist --bins 2 --csv - | cmp - got.csv
# --raw applies to every input, even if it has a header.
$ gpufilter info --raw 4x2:u8 samples/page.png
! gpufilter: samples/page.png: has 517277 bytes, but --raw specifies 8; correct its shape
[1]
$ printf 'P5 1 1 255\n.' | gpufilter info --json --raw 2x3:u16be -
> {"schema": "gpufilter-info", "schema_version": 2, "file": "-", "kind": "raw", "image": {"width": 2, "height": 3, "channels": 1, "type": "u16", "alpha": false}, "stored": "16-bit raw, big-endian", "metadata": []}
# A wrong shape is rejected, because the pixels would be wrong.
$ gpufilter smooth --raw 640x481:u16 c.raw out.png
! gpufilter: c.raw: has 614400 bytes, but --raw specifies 615680; correct its shape
[1]
$ gpufilter smooth --raw 640x480:u8 c.raw out.png
! gpufilter: c.raw: has 614400 bytes, but --raw specifies 307200; correct its shape
[1]
$ cat c.raw | gpufilter smooth --raw 640x479:u16 - out.png
! gpufilter: standard input: contains more than the 613120 bytes that --raw specifies; correct its shape
[1]
$ cat c.raw | gpufilter smooth --raw 640x481:u16 - out.png
! gpufilter: standard input: the file ends too early, in row 481 of 481; get a complete copy
[1]
$ gpufilter smooth --raw 640x480 c.raw out.png
! gpufilter: --raw '640x480': must be WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET], such as 4096x3072:u16be+512; TYPE is u8, u16, u16le, u16be, f32, f32le or f32be, CHANNELS 1 to 4
[2]
$ gpufilter info --raw 640x480:u16+ c.raw
! gpufilter: --raw '640x480:u16+': must be WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET], such as 4096x3072:u16be+512; TYPE is u8, u16, u16le, u16be, f32, f32le or f32be, CHANNELS 1 to 4
[2]
$ gpufilter smooth --raw 1000000x1000000:u8 c.raw out.png
! gpufilter: c.raw: 1000000x1000000 pixels are over the limit of 34359738368; raise it with --max-pixels
[1]
$ gpufilter compare --raw 640x480:u16 c.raw rgba.raw
! gpufilter: rgba.raw: has 921600 bytes, but --raw specifies 614400; correct its shape
[2]
$ gpufilter smooth c.raw out.png
! gpufilter: c.raw: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
[1]
$ ls out.png
! ls: cannot access 'out.png': No such file or directory
[2]
# Batches: directories contribute only .raw files, and none without --raw, because raw camera files have the same extension.
$ mkdir in in/deep; cp c.raw in/one.raw; cp c.raw in/deep/two.RAW; cp c.raw in/three.dat; cp samples/page.png in
$ gpufilter smooth -R in --raw 640x480:u16 -O out -q; (cd out; find . -name '*[a-z0-9A-Z]' -type f | sort | grep -v done); gpufilter smooth --raw 640x480:u16 c.raw - --format raw | tee want.raw | cmp - out/one.raw; cmp want.raw out/deep/two.RAW
> ./deep/two.RAW
> ./one.raw
! gpufilter: c.raw: brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ gpufilter smooth -R in -O pictures -q; ls pictures
> page.png
$ gpufilter smooth in/three.dat in/one.raw c.raw --raw 640x480:u16 -O many -q; ls many; cmp many/one.raw want.raw; gpufilter smooth --raw 640x480:u16 c.raw - | cmp - many/three.png
> c.raw
> one.raw
> three.png
! gpufilter: c.raw: brightness x1.452, 49.7 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth in/one.raw samples/page.png --raw 640x480:u16 -O mixed 2>&1 | sed 's/ in .*/ in #/'
> gpufilter: samples/page.png: has 517277 bytes, but --raw specifies 614400; correct its shape
> 1 done, 1 failed, 0 skipped in #
>   brightness x1.452, clipped samples not counted; --keep-brightness avoids it
$ gpufilter hist -R in --raw 640x480:u16 --bins 1 --csv -q
> file,bin,from,to,grey
> in/deep/two.RAW,0,0,65535,307200
> in/one.raw,0,0,65535,307200
