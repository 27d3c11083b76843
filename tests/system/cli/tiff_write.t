# TIFF output. The file is the same through a pipe, with any number of threads and any strip height.
$ for compression in none lzw deflate zstd; do gpufilter smooth -q samples/scene.png $compression.tif --tiff-compression $compression -j 1; gpufilter smooth -q samples/scene.png - --format tiff --tiff-compression $compression -j 7 --rows-per-strip 5 | cmp - $compression.tif; head -c 3 $compression.tif; echo; done; gpufilter smooth samples/scene.png default.tiff; cmp deflate.tif default.tiff
> II*
> II*
> II*
> II*
! gpufilter: samples/scene.png: brightness x1.452, 25.0 % of samples clipped; --keep-brightness avoids it
# Deflate and LZW compress this picture.
$ test $(stat -c %s deflate.tif) -lt $(stat -c %s lzw.tif) && test $(stat -c %s lzw.tif) -lt $(stat -c %s none.tif)
$ gpufilter smooth samples/scene.png out.tif --tiff-compression jpeg
! gpufilter: --tiff-compression 'jpeg': must be deflate, none, lzw or zstd
[2]
# A pipe receives the whole file at the end.
$ gpufilter smooth samples/scene.png - --format tif --max-memory 1M | wc -c
> 0
! gpufilter: standard output: 1302660 bytes for the file, which is held until its end, are over the limit of 1048576; raise it with --max-memory
# Samples of binary32 stay as they are.
$ gpufilter smooth samples/ramp.pfm ramp.tif && gpufilter smooth samples/cutout.png cutout.tif && gpufilter smooth samples/gradient16.png gradient.tif && ls *.tif
> cutout.tif
> deflate.tif
> gradient.tif
> lzw.tif
> none.tif
> ramp.tif
> zstd.tif
! gpufilter: samples/cutout.png: brightness x1.452, 22.3 % of samples clipped; --keep-brightness avoids it
! gpufilter: samples/gradient16.png: brightness x1.452, 24.1 % of samples clipped; --keep-brightness avoids it
