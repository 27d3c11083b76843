# PBM is read, not written; other maximum values are scaled to 255 or 65535.
$ printf 'P1\n5 2\n01010\n10101\n' >bits.pbm; printf 'P2\n3 1\n15\n0 7 15\n' >low.pgm; printf 'P5\n2 2\n1023\n\0\0\3\377\1\0\2\0' >ten.pgm; gpufilter info bits.pbm low.pgm ten.pgm
> bits.pbm: PBM, 5x2 grey u8 (1-bit text), 10 bytes of pixels
> low.pgm: PGM, 3x1 grey u8 (8-bit text, maxval 15), 3 bytes of pixels
> ten.pgm: PGM, 2x2 grey u16 (16-bit binary, maxval 1023), 8 bytes of pixels
$ for file in bits.pbm low.pgm ten.pgm; do gpufilter smooth -q --stages enhance --gain 1 $file - --format pgm | tail -n +4 | od -An -tx1; done
>  ff 00 ff 00 ff 00 ff 00 ff 00
>  00 77 ff
>  00 00 ff ff 40 10 80 20
$ gpufilter smooth -q bits.pbm bits2.pbm
! gpufilter: bits2.pbm: cannot write PBM; use an extension such as .png, .pam or .pfm, or --format
[2]
$ mkdir tree; cp bits.pbm tree; gpufilter smooth -q -R tree --out-dir made; ls made; rm -r tree made
> bits.png
$ printf 'P5\n2 2\n1023\n\0\0\3\377\1\0\4\0' | gpufilter hist --bins 2 -
! gpufilter: standard input: row 2 of 2 has a sample greater than maxval 1023; the file is damaged
[1]
# NumPy arrays are read and written, also through pipes and from directories.
$ gpufilter smooth -q samples/scene.png a.npy; gpufilter info a.npy; head -c 128 a.npy | tail -c +11 | sed 's/ *$//'
> a.npy: NPY, 768x512 RGB u8 (8-bit), 1.2 MB of pixels
> {'descr': '|u1', 'fortran_order': False, 'shape': (512, 768, 3), }
$ gpufilter smooth -q samples/scene.png a.ppm; tail -n +4 a.ppm >rows; tail -c +129 a.npy | cmp - rows; cat a.npy | gpufilter compare - a.ppm
> standard input, a.ppm: 768x512 RGB u8, by cpu
> 
> same: 1179648 samples
$ gpufilter smooth samples/ramp.pfm - --format npy | tail -c +129 >got; gpufilter smooth samples/ramp.pfm - --format raw | cmp - got
$ mkdir tree; cp a.npy tree; gpufilter smooth -q -R tree --out-dir made; ls made; gpufilter normalize -q -R tree --out-dir made --format png; ls made; rm -r tree made
> a.npy
> a.npy
> a.png
$ for array in "'<i2', 'fortran_order': False, 'shape': (1, 2)" "'|u1', 'fortran_order': True, 'shape': (2, 2)" "[('x', '<u8')]" "'|u1', 'fortran_order': False, 'shape': (2,)"; do printf '\223NUMPY\1\0\100\0%-63s\n1234' "{'descr': $array}" >no.npy; gpufilter info no.npy; done
> no.npy: NPY, 2x2 grey u8 (8-bit, Fortran order), 4 bytes of pixels
! gpufilter: no.npy: samples are not u8, u16 or f32 (16-bit signed, little-endian); read them with --as f32 or --as u16, which keep the values
! gpufilter: no.npy: has a structured dtype; save a field of it, such as array['value']
! gpufilter: no.npy: is 1-dimensional, images have 2 or more dimensions; save array.reshape(height, width)
[1]
$ printf '\223NUMPY\1\0\110\0%-71s\n\377\377\1\0\2\0\3\0\4\0\5\0' "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 1, 6), }" >six.npy; gpufilter info six.npy; gpufilter info --as f32 --channels 6,1 six.npy; gpufilter hist --as f32 --channels 1 --range -2,2 -n 2 --csv six.npy; gpufilter hist --as u16 --channels 1,2,3 six.npy; gpufilter hist --as u16 --channels 7 six.npy; gpufilter hist --channels 0 six.npy
> six.npy: NPY, 1x1 grey+data f32 (16-bit signed, little-endian), 8 bytes of pixels
> bin,from,to,grey
> 0,-2,0,1
> 1,0,2,0
! gpufilter: six.npy: samples are not u8, u16 or f32 (16-bit signed, little-endian); read them with --as f32 or --as u16, which keep the values
! gpufilter: six.npy: --as u16 keeps integers from 0 to 65535; samples with other values: 1, from -1 to -1; use --as f32
! gpufilter: six.npy: has no channel 7; choose from 1 to 6 with --channels
! gpufilter: six.npy: samples are not u8, u16 or f32 (16-bit signed, little-endian); read them with --as f32 or --as u16, which keep the values
[1]
$ cat samples/ramp.pfm samples/ramp.pfm >both.pfm; gpufilter axis-sum --csv both.pfm | wc -l; gpufilter axis-sum --csv --page 2 both.pfm | wc -l; gpufilter info --page 2 both.pfm; gpufilter info --page 3 both.pfm
> 5
> 5
> both.pfm: PFM, 1024x4 grey f32 (32-bit float, little-endian, scale 1, page 2 of 2), 16 kB of pixels
! gpufilter: both.pfm: image 1 of 2; --page selects another
! gpufilter: both.pfm: has no page 3; choose one from 1 to 2 with --page
[1]
$ gpufilter hist -q -n 8 -x 3 -o samples.npy samples/scene.png; gpufilter info samples.npy
! gpufilter: samples.npy: has a structured dtype; save a field of it, such as array['value']
[1]
$ gpufilter smooth -q --raw 1x1x2:f32 <(printf 12345678) two.pfm; gpufilter smooth -q --raw 1x1x2:f32 <(printf 12345678) two.npy && gpufilter info two.npy
> two.npy: NPY, 1x1 grey+data f32 (32-bit float, little-endian), 8 bytes of pixels
! gpufilter: two.pfm: PFM does not support 2 channels; write .tif
# A page of an array from a pipe.
$ (printf '\x93NUMPY\1\0v\0'; printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 5), }"; printf abcdefghij) >stack.npy; cat stack.npy | gpufilter smooth -q --stages enhance --gain 1 --page 2 --format pgm - - | tail -n 1
> fghij
# Only what a file or --alpha declares is alpha. PNG, PAM and TGA store the channel only as alpha.
$ copy="gpufilter smooth -q -f --stages enhance --gain 1"; $copy samples/cutout.png a.npy; $copy samples/cutout.png a.tif; $copy a.npy data.tif; gpufilter info a.npy a.tif data.tif
> a.npy: NPY, 480x480 RGB+data u8 (8-bit), 922 kB of pixels
> a.tif: TIF, 480x480 RGBA u8 (8-bit RGB and alpha, strips, Deflate, predictor 2), 922 kB of pixels
> data.tif: TIF, 480x480 RGB+data u8 (8-bit RGB and data, strips, Deflate, predictor 2), 922 kB of pixels
$ copy="gpufilter smooth -q -f --stages enhance --gain 1"; for end in png pam tga bmp; do $copy a.npy b.$end; $copy --alpha last a.npy b.$end && gpufilter compare samples/cutout.png b.$end; done
> samples/cutout.png, b.png: 480x480 RGBA u8, by cpu
> 
> same: 921600 samples
> samples/cutout.png, b.pam: 480x480 RGBA u8, by cpu
> 
> same: 921600 samples
> samples/cutout.png, b.tga: 480x480 RGBA u8, by cpu
> 
> same: 921600 samples
> samples/cutout.png, b.bmp: 480x480 RGBA u8, by cpu
> 
> same: 921600 samples
! gpufilter: b.png: PNG stores channel 4 only as alpha, and here it is data; write .tif, or declare it with --alpha last
! gpufilter: b.pam: PAM stores channel 4 only as alpha, and here it is data; write .tif, or declare it with --alpha last
! gpufilter: b.tga: TGA stores channel 4 only as alpha, and here it is data; write .tif, or declare it with --alpha last
! gpufilter: b.bmp: BMP stores channel 4 only as alpha, and here it is data; write .tif, or declare it with --alpha last
$ copy="gpufilter smooth -q -f --stages enhance --gain 1"; for end in png jpg; do $copy --alpha none a.tif b.$end; done
! gpufilter: b.png: PNG stores channel 4 only as alpha, and here it is data; write .tif, or declare it with --alpha last
! gpufilter: b.jpg: JPEG does not support 4 channels; write .tif
[1]
$ copy="gpufilter smooth -q -f --stages enhance --gain 1"; $copy --alpha last samples/scene.png b.png
! gpufilter: samples/scene.png: --alpha last: the image has 3 channels, and alpha is the last of 2 or 4; remove --alpha
[1]
$ copy="gpufilter smooth -q -f --stages enhance --gain 1"; $copy --alpha some samples/scene.png b.png
! gpufilter: --alpha 'some': must be file, last or none
[2]
$ gpufilter axis-sum --csv a.npy | head -1; gpufilter axis-sum --csv --alpha last data.tif | head -1; gpufilter compare a.npy a.tif && gpufilter dot --csv a.npy a.tif | tail -2 | cut -d, -f 1
> y,r,g,b,data
> y,r,g,b
> a.npy, a.tif: 480x480 RGBA u8, by cpu
> 
> same: 921600 samples
> b
> total
$ gpufilter smooth -q -f a.npy a2.npy; gpufilter smooth -q -f --alpha last a.npy last.npy; gpufilter smooth -q -f samples/cutout.png a2.png; gpufilter compare last.npy a2.png; gpufilter compare -q a2.npy a2.png
> last.npy, a2.png: 480x480 RGBA u8, by cpu
> 
> same: 921600 samples
[1]
# Filters that do not mix pixels cannot weigh by alpha, and images without alpha stay as they are.
$ gpufilter normalize -q --premultiply on samples/cutout.png b.png
! gpufilter: --premultiply: normalize does not mix the colours of pixels
[2]
$ gpufilter smooth -q -f -k --premultiply on samples/scene.png b.png; gpufilter smooth -q -k samples/scene.png c.png; gpufilter compare b.png c.png
> b.png, c.png: 768x512 RGB u8, by cpu
> 
> same: 1179648 samples
# Formats that are neither read nor written are refused by name.
$ printf 'RIFF\44\0\0\0WEBPVP8 \0\0\0\0' >f.webp; printf '\0\0\0\34ftypheic\0\0\0\0' >f.heic; printf '\0\0\0\34ftypmif1\0\0\0\0' >f.heif; printf '\0\0\0\34ftypavif\0\0\0\0' >f.avif; printf '\0\0\0\14JXL \r\n\207\n\0\0\0\0' >f.jxl; printf '\377\12\0\0' >g.jxl; printf '\0\0\0\14jP  \r\n\207\n\0\0\0\0' >f.jp2; printf 'v/1\1\2\0\0\0' >f.exr; printf '%%PDF-1.4\n' >f.pdf; printf '<svg xmlns="x"/>' >f.svg; printf 'RIFF\44\0\0\0WAVEfmt ' >f.wav; printf 'WEBP' >g.webp
$ for file in f.webp f.heic f.heif f.avif f.jxl g.jxl f.jp2 f.exr f.pdf f.svg f.wav g.webp; do gpufilter hist $file; done
! gpufilter: f.webp: cannot read WebP; convert it first, e.g. with vips copy in.webp out.tif
! gpufilter: f.heic: cannot read HEIC; convert it first, e.g. with vips copy in.heic out.tif
! gpufilter: f.heif: cannot read HEIC; convert it first, e.g. with vips copy in.heic out.tif
! gpufilter: f.avif: cannot read AVIF; convert it first, e.g. with vips copy in.avif out.tif
! gpufilter: f.jxl: cannot read JPEG XL; convert it first, e.g. with vips copy in.jxl out.tif
! gpufilter: g.jxl: cannot read JPEG XL; convert it first, e.g. with vips copy in.jxl out.tif
! gpufilter: f.jp2: cannot read JPEG 2000; convert it first, e.g. with vips copy in.jp2 out.tif
! gpufilter: f.exr: cannot read OpenEXR; convert it first, e.g. with vips copy in.exr out.tif
! gpufilter: f.pdf: cannot read PDF; convert it first, e.g. with vips copy in.pdf out.tif
! gpufilter: f.svg: cannot read SVG; convert it first, e.g. with vips copy in.svg out.tif
! gpufilter: f.wav: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
! gpufilter: g.webp: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
[1]
$ for extension in webp heic gif psd pbm svg; do gpufilter smooth samples/page.png out.$extension; done
! gpufilter: out.webp: cannot write WebP; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: out.heic: cannot write HEIC; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: out.gif: cannot write GIF; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: out.psd: cannot write PSD; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: out.pbm: cannot write PBM; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: out.svg: cannot write SVG; use an extension such as .png, .pam or .pfm, or --format
[2]
