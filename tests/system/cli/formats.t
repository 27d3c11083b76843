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
