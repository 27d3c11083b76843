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
$ for array in "'<i8', 'fortran_order': False, 'shape': (1, 1)" "'|u1', 'fortran_order': True, 'shape': (2, 2)" "[('x', '<u8')]" "'|u1', 'fortran_order': False, 'shape': (2,)"; do printf '\223NUMPY\1\0\100\0%-63s\n1234' "{'descr': $array}" >no.npy; gpufilter info no.npy; done
! gpufilter: no.npy: has dtype int64, only uint8, uint16 and float32 are supported; save array.astype(numpy.float32)
! gpufilter: no.npy: is in Fortran order; save numpy.ascontiguousarray(array)
! gpufilter: no.npy: has a structured dtype; save a field of it, such as array['value']
! gpufilter: no.npy: is 1-dimensional, images have 2 or 3 dimensions; save array.reshape(height, width)
[1]
$ gpufilter hist -q -n 8 -x 3 -o samples.npy samples/scene.png; gpufilter info samples.npy
! gpufilter: samples.npy: has a structured dtype; save a field of it, such as array['value']
[1]
$ gpufilter smooth -q --raw 1x1x2:f32 <(printf 12345678) two.pfm; gpufilter smooth -q --raw 1x1x2:f32 <(printf 12345678) two.npy && gpufilter info two.npy
> two.npy: NPY, 1x1 grey+data f32 (32-bit float, little-endian), 8 bytes of pixels
! gpufilter: two.pfm: PFM does not support 2 channels; write .tif
