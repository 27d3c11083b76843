# Usage errors: exit code 2, one line, no output.
$ gpufilter smoth a.png b.png
! gpufilter: smoth: no such filter or command; did you mean smooth?
[2]
$ gpufilter --radius 2 smooth a.png b.png
! gpufilter: --radius: options follow the name of a filter or command; see 'gpufilter --help'
[2]
$ gpufilter help smoth
! gpufilter: smoth: no such filter or command; did you mean smooth?
[2]
$ gpufilter smooth
! gpufilter: smooth: expected IN OUT, got 0 operands; see 'gpufilter smooth --help'
[2]
$ gpufilter smooth a.png
! gpufilter: smooth: expected IN OUT, got 1 operand; see 'gpufilter smooth --help'
[2]
$ gpufilter smooth a.png b.png c.png
! gpufilter: smooth: expected IN OUT, got 3 operands; for several inputs use --out-dir; see 'gpufilter smooth --help'
[2]
$ gpufilter smooth --radius -1 samples/scene.png out.png
! gpufilter: --radius '-1': must be an integer from 0 to 127
[2]
$ gpufilter smooth --radius 128 samples/scene.png out.png
! gpufilter: --radius '128': must be an integer from 0 to 127
[2]
$ gpufilter smooth --radius=two samples/scene.png out.png
! gpufilter: --radius 'two': must be an integer from 0 to 127
[2]
$ gpufilter smooth --radius
! gpufilter: --radius: requires a value (R)
[2]
$ gpufilter smooth --unknown samples/scene.png out.png
! gpufilter: --unknown: unknown option of smooth; see 'gpufilter smooth --help'
[2]
$ gpufilter smooth -rz samples/scene.png out.png
! gpufilter: --radius 'z': must be an integer from 0 to 127
[2]
$ gpufilter smooth -Z samples/scene.png out.png
! gpufilter: -Z: unknown option of smooth; see 'gpufilter smooth --help'
[2]
$ gpufilter smooth --strip=yes samples/scene.png out.png
! gpufilter: --strip 'yes': takes no value
[2]
$ gpufilter smooth --axis z samples/scene.png out.png
! gpufilter: --axis 'z': must be x, y or xy
[2]
$ gpufilter smooth --stages smooth,blur samples/scene.png out.png
! gpufilter: --stages 'smooth,blur': must be a comma-separated list of enhance, blur or smooth, each once, in this order
[2]
$ gpufilter smooth --keep-brightness --weight 0 samples/scene.png out.png
! gpufilter: --keep-brightness: cannot undo a --weight below 1e-30; use a larger weight
[2]
$ gpufilter smooth --backend gpu samples/scene.png out.png
! gpufilter: --backend 'gpu': must be auto, golden, cpu or cuda
[2]
$ gpufilter smooth --format jpeg2000 samples/scene.png out.png
! gpufilter: --format 'jpeg2000': must be png, pgm, ppm, pnm, pam, pfm, npy, ff, jpg, jpeg, tif, tiff, bmp, tga, hdr or raw
[2]
$ gpufilter smooth --max-memory lots samples/scene.png out.png
! gpufilter: --max-memory 'lots': must be an integer from 1 to 1000000000000000000; suffixes K, M, G and T are powers of 1024
[2]
$ gpufilter smooth --max-pixels 0 samples/scene.png out.png
! gpufilter: --max-pixels '0': must be an integer from 1 to 1000000000000000000; suffixes K, M, G and T are powers of 1024
[2]
$ gpufilter smooth --max-chunk 4G samples/scene.png out.png
! gpufilter: --max-chunk '4G': must be an integer from 1024 to 2147483647; suffixes K, M, G and T are powers of 1024
[2]
$ gpufilter smooth --keep-brightness --weight 1e-39 samples/scene.png out.png
! gpufilter: --keep-brightness: cannot undo a --weight below 1e-30; use a larger weight
[2]
$ gpufilter smooth --backend cpu --device 0 samples/scene.png out.png
! gpufilter: --device: not supported by the cpu backend; use --backend cuda
[2]
$ gpufilter smooth samples/scene.png samples
! gpufilter: samples: is a directory; name a file in it, or use --out-dir for all operands
[1]
$ ls
> samples
# File errors: exit code 1, one line; existing files are kept, and no temporary files are left.
$ gpufilter smooth absent.png out.png
! gpufilter: absent.png: cannot open: No such file or directory
[1]
$ gpufilter smooth samples out.png
! gpufilter: samples: is a directory; to process its images use 'gpufilter smooth -R samples --out-dir OUT'
[1]
$ head -c 20000 samples/scene.png >short.png; gpufilter smooth short.png out.png
! gpufilter: short.png: the PNG ends too early; get a complete copy
[1]
$ head -c 20 samples/scene.png >shorter.png; gpufilter smooth shorter.png out.png
! gpufilter: shorter.png: the PNG ends too early; get a complete copy
[1]
$ echo 'this is text' >text.png; gpufilter smooth text.png out.png
! gpufilter: text.png: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
[1]
$ : >empty.png; gpufilter smooth empty.png out.png
! gpufilter: empty.png: the file is empty
[1]
$ { head -c 3000 samples/page.png; printf 'xxxx'; tail -c +3005 samples/page.png; } >broken.png; gpufilter smooth broken.png out.png
! gpufilter: broken.png: the PNG is damaged (IDAT: CRC error); get an intact copy
[1]
$ gpufilter smooth samples/scene.png no/such/directory/out.png
! gpufilter: no/such/directory/out.png: its directory does not exist or holds no files; create it first, or name another
[1]
$ gpufilter smooth samples/scene.png text.png/out.png
! gpufilter: text.png/out.png: cannot open: Not a directory
[1]
$ gpufilter smooth samples/scene.png .
! gpufilter: .: is a directory; name a file in it, or use --out-dir for all operands
[1]
$ echo precious >kept.png; gpufilter smooth samples/scene.png kept.png
! gpufilter: kept.png: already exists; use --force to replace it
[1]
$ cat kept.png
> precious
$ gpufilter smooth --force short.png kept.png
! gpufilter: short.png: the PNG ends too early; get a complete copy
[1]
$ cat kept.png
> precious
$ gpufilter smooth samples/scene.png out.xyz
! gpufilter: out.xyz: cannot infer the format from this name; use a known extension such as .png, or --format
[2]
$ gpufilter smooth samples/scene.png out
! gpufilter: out: cannot infer the format from this name; use a known extension such as .png, or --format
[2]
$ for name in out.webp out.WEBP out.gif; do gpufilter smooth samples/scene.png $name; done
! gpufilter: out.webp: cannot write WebP; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: out.WEBP: cannot write WebP; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: out.gif: cannot write GIF; use an extension such as .png, .pam or .pfm, or --format
[2]
$ gpufilter smooth samples/gradient16.png out.jpg
! gpufilter: out.jpg: JPEG supports only u8 samples, and this image is u16; write .png or give --depth 8
[1]
$ gpufilter smooth samples/cutout.png out.jpg
! gpufilter: out.jpg: JPEG does not support an alpha channel; write .png or .pam
[1]
$ gpufilter smooth samples/cutout.png out.ppm
! gpufilter: out.ppm: PPM does not support an alpha channel; write .png or .pam
[1]
$ gpufilter smooth samples/ramp.pfm out.png
! gpufilter: out.png: PNG does not support f32 samples; write .tif or give --depth 16
[1]
$ gpufilter smooth samples/scene.png out.pgm
! gpufilter: out.pgm: PGM does not support colour images; write .ppm, .pnm or .png
[1]
$ gpufilter smooth samples/scene.png /dev/full --format png
! gpufilter: /dev/full: cannot write: No space left on device
[1]
$ gpufilter smooth samples/scene.png - --format ppm >/dev/full
! gpufilter: standard output: cannot write: No space left on device
[1]
$ gpufilter -h >/dev/full
! gpufilter: standard output: cannot write: No space left on device
[1]
# The reason is printed for any length of the name.
$ gpufilter smooth $(printf 'a/%.0s' {1..900}) out.png 2>&1 | tail -c 55
> a/a/a/a/a/a/a/: cannot open: No such file or directory
# Errors about limits name the option that raises the limit.
$ gpufilter smooth --max-pixels 1000 samples/scene.png out.png
! gpufilter: samples/scene.png: 768x512 pixels are over the limit of 1000; raise it with --max-pixels
[1]
$ gpufilter resize --scale 1000 samples/scene.png out.png
! gpufilter: resize: 768000x512000 pixels are over the limit of 34359738368; raise it with --max-pixels
[1]
$ gpufilter run --max-pixels 475734 samples/scene.png ! gaussian ! resize scale=1.1 ! write out.png
! gpufilter: step 2, resize: 845x563 pixels are over the limit of 475734; raise it with --max-pixels
[1]
$ gpufilter smooth --max-memory 1000 samples/scene.png out.png
! gpufilter: samples/scene.png: 4608 bytes for two rows are over the limit of 1000; raise it with --max-memory
[1]
$ gpufilter smooth --backend golden --max-memory 1M samples/scene.png out.png
! gpufilter: samples/scene.png: strips of 512 rows need more than 1048576 bytes; raise --max-memory
[1]
$ ls -A | grep -v samples
> broken.png
> empty.png
> kept.png
> short.png
> shorter.png
> text.png

# Suggestions for misspelled words.
$ gpufilter axissum in.png
! gpufilter: axissum: no such filter or command; did you mean axis-sum?
[2]
$ gpufilter hits in.png
! gpufilter: hits: no such filter or command; did you mean hist?
[2]
$ gpufilter help help | head -n 1
> Usage: gpufilter FILTER [OPTION]... IN [OUT]
$ gpufilter helo
! gpufilter: helo: no such filter or command; did you mean help?
[2]
$ gpufilter help helo
! gpufilter: helo: no such filter or command; see 'gpufilter --help'
[2]
$ gpufilter help devises
! gpufilter: devises: no such filter or command; did you mean devices?
[2]
$ gpufilter samples/page.png out.png
! gpufilter: samples/page.png: is a file, not a filter or command; name one before the file, as in 'gpufilter info samples/page.png'
[2]
$ for option in "-o out.png" --output=out.png -y -fy --yes --overwrite "--sigma 2"; do for filter in smooth hist dot info; do gpufilter $filter $option samples/card.png; done; done 2>&1 >/dev/null | sort | uniq -c | sed 's/^ *//'
> 1 gpufilter: --out: no bins to extract; name them with --extract
> 1 gpufilter: --output: unknown option of dot; results go to standard output; redirect it with > FILE
> 1 gpufilter: --output: unknown option of hist; results go to standard output; --out is the file of extracted samples
> 1 gpufilter: --output: unknown option of info; results go to standard output; redirect it with > FILE
> 1 gpufilter: --output: unknown option of smooth; the output is the second operand, or use --out-dir
> 1 gpufilter: --overwrite: unknown option of dot; see 'gpufilter dot --help'
> 1 gpufilter: --overwrite: unknown option of hist; use --force to overwrite outputs
> 1 gpufilter: --overwrite: unknown option of info; see 'gpufilter info --help'
> 1 gpufilter: --overwrite: unknown option of smooth; use --force to overwrite outputs
> 1 gpufilter: --sigma: unknown option of dot (it is an option of gaussian); see 'gpufilter dot --help'
> 1 gpufilter: --sigma: unknown option of hist (it is an option of gaussian); see 'gpufilter hist --help'
> 1 gpufilter: --sigma: unknown option of info (it is an option of gaussian); see 'gpufilter info --help'
> 1 gpufilter: --sigma: unknown option of smooth; use --radius, in pixels; 'gpufilter gaussian' has --sigma
> 1 gpufilter: --yes: unknown option of dot; see 'gpufilter dot --help'
> 1 gpufilter: --yes: unknown option of hist; use --force to overwrite outputs
> 1 gpufilter: --yes: unknown option of info; see 'gpufilter info --help'
> 1 gpufilter: --yes: unknown option of smooth; use --force to overwrite outputs
> 1 gpufilter: -f: unknown option of dot; see 'gpufilter dot --help'
> 1 gpufilter: -f: unknown option of info; see 'gpufilter info --help'
> 1 gpufilter: -o: unknown option of dot; results go to standard output; redirect it with > FILE
> 1 gpufilter: -o: unknown option of info; results go to standard output; redirect it with > FILE
> 1 gpufilter: -o: unknown option of smooth; the output is the second operand, or use --out-dir
> 1 gpufilter: -y: unknown option of dot; see 'gpufilter dot --help'
> 2 gpufilter: -y: unknown option of hist; use --force to overwrite outputs
> 1 gpufilter: -y: unknown option of info; see 'gpufilter info --help'
> 2 gpufilter: -y: unknown option of smooth; use --force to overwrite outputs
# Words of other programs name what exists here. A word that resembles an unrelated name suggests nothing.
$ for word in psnr mse ssim stats identify diff crop rotate blur unsharp sobel emboss edge convert thumbnail bilateral despeckle opening grayscale threshold smbl; do gpufilter $word a.png b.png; gpufilter smooth --$word a.png b.png; done
! gpufilter: psnr: no such filter or command; 'gpufilter dot A B' reports MSE and PSNR, but not SSIM
! gpufilter: --psnr: unknown option of smooth; 'gpufilter dot A B' reports MSE and PSNR, but not SSIM
! gpufilter: mse: no such filter or command; 'gpufilter dot A B' reports MSE and PSNR, but not SSIM
! gpufilter: --mse: unknown option of smooth; 'gpufilter dot A B' reports MSE and PSNR, but not SSIM
! gpufilter: ssim: no such filter or command; 'gpufilter dot A B' reports MSE and PSNR, but not SSIM
! gpufilter: --ssim: unknown option of smooth; 'gpufilter dot A B' reports MSE and PSNR, but not SSIM
! gpufilter: stats: no such filter or command; 'gpufilter hist --statistics FILE' reports statistics
! gpufilter: --stats: unknown option of smooth; 'gpufilter hist --statistics FILE' reports statistics
! gpufilter: identify: no such filter or command; 'gpufilter info FILE' describes a file
! gpufilter: --identify: unknown option of smooth; 'gpufilter info FILE' describes a file
! gpufilter: diff: no such filter or command; 'gpufilter compare A B' compares images
! gpufilter: --diff: unknown option of smooth; 'gpufilter compare A B' compares images
! gpufilter: crop: no such filter or command; filters read a rectangle of their input with --crop X,Y,W,H
! gpufilter: --crop 'a.png': must be X,Y,WIDTH,HEIGHT in pixels, such as 100,50,640,480
! gpufilter: rotate: no such filter or command; not supported; --autorotate turns inputs by EXIF orientation
! gpufilter: --rotate: unknown option of smooth; not supported; --autorotate turns inputs by EXIF orientation
! gpufilter: blur: no such filter or command; 'gpufilter gaussian' and 'gpufilter box' blur images
! gpufilter: --blur: unknown option of smooth; 'gpufilter gaussian' and 'gpufilter box' blur images
! gpufilter: unsharp: no such filter or command; 'gpufilter sharpen' is an unsharp mask
! gpufilter: --unsharp: unknown option of smooth; 'gpufilter sharpen' is an unsharp mask
! gpufilter: sobel: no such filter or command; 'gpufilter convolve --kernel "-1 0 1 -2 0 2 -1 0 1" IN OUT' is the Sobel filter along x
! gpufilter: --sobel: unknown option of smooth; see 'gpufilter smooth --help'
! gpufilter: emboss: no such filter or command; 'gpufilter convolve --kernel "-2 -1 0 -1 1 1 0 1 2" IN OUT' embosses
! gpufilter: --emboss: unknown option of smooth; 'gpufilter convolve --kernel "-2 -1 0 -1 1 1 0 1 2" IN OUT' embosses
! gpufilter: edge: no such filter or command; 'gpufilter convolve --kernel "-1 0 1 -2 0 2 -1 0 1" IN OUT' is the Sobel filter along x
! gpufilter: --edge: unknown option of smooth (it is an option of gaussian); see 'gpufilter smooth --help'
! gpufilter: convert: no such filter or command; 'gpufilter smooth --stages enhance --gain 1 IN OUT' changes only the format
! gpufilter: --convert: unknown option of smooth; 'gpufilter smooth --stages enhance --gain 1 IN OUT' changes only the format
! gpufilter: thumbnail: no such filter or command; 'gpufilter resize' changes the size of an image
! gpufilter: --thumbnail: unknown option of smooth; 'gpufilter resize' changes the size of an image
! gpufilter: bilateral: no such filter or command; gpufilter has no such operation
! gpufilter: --bilateral: unknown option of smooth; see 'gpufilter smooth --help'
! gpufilter: despeckle: no such filter or command; 'gpufilter median' removes noise
! gpufilter: --despeckle: unknown option of smooth; see 'gpufilter smooth --help'
! gpufilter: opening: no such filter or command; an opening is 'gpufilter erode', then 'gpufilter dilate'
! gpufilter: --opening: unknown option of smooth; see 'gpufilter smooth --help'
! gpufilter: grayscale: no such filter or command; gpufilter has no such operation
! gpufilter: --grayscale: unknown option of smooth; see 'gpufilter smooth --help'
! gpufilter: threshold: no such filter or command; gpufilter has no such operation
! gpufilter: --threshold: unknown option of smooth (it is an option of sharpen); see 'gpufilter smooth --help'
! gpufilter: smbl: no such filter or command; see 'gpufilter --help'
! gpufilter: --smbl: unknown option of smooth; see 'gpufilter smooth --help'
[2]
$ gpufilter smooth --stages enhance --gain 1 samples/scene.png convert.tif; gpufilter compare samples/scene.png convert.tif
> samples/scene.png, convert.tif: 768x512 RGB u8, by cpu
> 
> same: 1179648 samples
# Operands that name no file.
$ gpufilter hist ''; gpufilter smooth samples/page.png ''; gpufilter smooth samples/page.png new/; gpufilter smooth samples/page.png samples; gpufilter smooth samples/page.png /proc/a.png
! gpufilter: hist: operand 1 is empty; name a file
! gpufilter: smooth: operand 2 is empty; name a file
! gpufilter: new/: is a directory; name a file in it, or use --out-dir for all operands
! gpufilter: samples: is a directory; name a file in it, or use --out-dir for all operands
! gpufilter: /proc/a.png: its directory does not exist or holds no files; create it first, or name another
[1]
$ mkdir pictures; gpufilter smooth pictures out; gpufilter smooth pictures; gpufilter hist pictures; gpufilter dot pictures pictures; rmdir pictures
! gpufilter: pictures: is a directory; to process its images use 'gpufilter smooth -R pictures --out-dir OUT'
! gpufilter: pictures: is a directory; to process its images use 'gpufilter smooth -R pictures --out-dir OUT'
! gpufilter: pictures: is a directory; to process its images use 'gpufilter hist -R pictures'
! gpufilter: pictures: is a directory; name an image file
$ gpufilter smooth --gian 2 samples/page.png out.png
! gpufilter: --gian: unknown option of smooth; did you mean --gain?
[2]
$ gpufilter smooth --raidus=3 samples/page.png out.png
! gpufilter: --raidus: unknown option of smooth; did you mean --radius?
[2]
$ gpufilter smooth --keep samples/page.png out.png
! gpufilter: --keep: unknown option of smooth; did you mean --keep-brightness or --keep-going?
[2]
$ gpufilter smooth --max samples/page.png out.png
! gpufilter: --max: unknown option of smooth; did you mean --max-memory, --max-pixels or --max-chunk?
[2]
$ gpufilter hist --bin 8 samples/page.png
! gpufilter: --bin: unknown option of hist; did you mean --bins?
[2]
$ gpufilter smooth --bins 8 samples/page.png out.png
! gpufilter: --bins: unknown option of smooth (it is an option of hist); see 'gpufilter smooth --help'
[2]
$ gpufilter info --extract 3 samples/page.png
! gpufilter: --extract: unknown option of info (it is an option of hist); see 'gpufilter info --help'
[2]
$ gpufilter smooth --no-such-option-at-all-not-even-nearly samples/page.png out.png
! gpufilter: --no-such-option-at-all-not-even-nearly: unknown option of smooth; see 'gpufilter smooth --help'
[2]
$ gpufilter smooth -z samples/page.png out.png
! gpufilter: -z: unknown option of smooth; see 'gpufilter smooth --help'
[2]
