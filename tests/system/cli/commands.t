# Contents of files; a corrupt file does not stop the others.
$ gpufilter info samples/scene.png samples/gradient16.png samples/cutout.png samples/ramp.pfm
> samples/scene.png: PNG, 768x512 RGB u8 (8-bit RGB), 1.2 MB of pixels
> samples/gradient16.png: PNG, 640x480 grey u16 (16-bit grey), 614 kB of pixels
> samples/cutout.png: PNG, 480x480 RGBA u8 (8-bit RGB and alpha), 922 kB of pixels
> samples/ramp.pfm: PFM, 1024x4 grey f32 (32-bit float, little-endian, scale 1), 16 kB of pixels
$ gpufilter info absent.png samples/page.png
> samples/page.png: PNG, 850x1100 grey u8 (8-bit grey), 935 kB of pixels
! gpufilter: absent.png: cannot open: No such file or directory
[1]
$ gpufilter info --json samples/page.png
> {"schema": "gpufilter-info", "schema_version": 2, "file": "samples/page.png", "kind": "png", "image": {"width": 850, "height": 1100, "channels": 1, "type": "u8", "alpha": false}, "stored": "8-bit grey", "metadata": []}
$ gpufilter info - <samples/page.png
> standard input: PNG, 850x1100 grey u8 (8-bit grey), 935 kB of pixels
$ echo text >text.txt; gpufilter info text.txt
! gpufilter: text.txt: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
[1]
$ gpufilter info
! gpufilter: info: expected input files; see 'gpufilter info --help'
[2]
$ mkdir -p tree/deep none; cp samples/card.png tree/deep/b.png; cp samples/ramp.pfm tree/a.pfm; touch tree/notes.txt; gpufilter info -R tree samples/card.png; echo tree/a.pfm | gpufilter info --files-from - --json | grep -o '"file": "[^"]*"'; gpufilter info -R none; rm tree/a.pfm; gpufilter info -R tree/notes.txt none tree/deep; mv tree/deep/b.png tree/b.txt; gpufilter info -R tree; gpufilter info tree; printf 'absent\n\0' | gpufilter info --files-from -; echo $?; gpufilter info --null samples/card.png; rm -r tree none
> tree/a.pfm: PFM, 1024x4 grey f32 (32-bit float, little-endian, scale 1), 16 kB of pixels
> tree/deep/b.png: PNG, 240x240 grey u8 (8-bit grey), 58 kB of pixels
> samples/card.png: PNG, 240x240 grey u8 (8-bit grey), 58 kB of pixels
> "file": "tree/a.pfm"
> tree/deep/b.png: PNG, 240x240 grey u8 (8-bit grey), 58 kB of pixels
> 2
! 1 file skipped: unsupported format (.txt)
! gpufilter: none: no images found
! gpufilter: tree/notes.txt: the file is empty
! gpufilter: tree: no images found; 2 files skipped: unsupported format (.txt)
! gpufilter: tree: is a directory; use --recursive to process its images
! gpufilter: --files-from 'standard input': contains a NUL byte; use --null for NUL-terminated names
! gpufilter: --null: requires --files-from
$ gpufilter info --bins 3 samples/page.png
! gpufilter: --bins: unknown option of info (it is an option of hist); see 'gpufilter info --help'
[2]
# The devices of this machine: always a CPU; without a GPU the reason is printed, with exit code 0.
$ CUDA_VISIBLE_DEVICES= gpufilter devices | sed -E 's/[0-9]+ cores?, [a-z0-9]+/#/; s/^(cuda: ).*/\1#/'
> cpu: #
> cuda: #
$ CUDA_VISIBLE_DEVICES= gpufilter devices --json | sed -E 's/"cpu": "[^"]*"/"cpu": "#"/; s/("cuda_error": ).*/\1#/'
> {"schema": "gpufilter-devices", "schema_version": 2, "cpu": "#", "cuda": [], "cuda_error": #
$ gpufilter devices extra
! gpufilter: devices: expected no operands, got 1; see 'gpufilter devices --help'
[2]
# The options of verify; its results: tests/system/verify.sh.
$ gpufilter verify --seed -1
! gpufilter: --seed '-1': must be an integer from 0 to 999999999999
[2]
$ CUDA_VISIBLE_DEVICES= gpufilter verify --samples 1 --backend cuda 2>&1 | sed -E 's/(cuda: ).*/\1#/'; exit ${PIPESTATUS[0]}
> gpufilter: cuda: #
[3]
$ gpufilter verify --samples none
! gpufilter: --samples 'none': must be an integer from 1 to 1000000000000000000; suffixes K, M, G and T are powers of 1024
[2]
# Every command and every filter prints the same version.
$ for command in --version version "smooth -V" "hist --version" "verify -V" "info --version" "devices -V"; do gpufilter $command; done | sed -E 's/^(no CUDA|CUDA for sm [^,]+), (no )?cairo, no MPI; SIMD: [a-z0-9]+$/built in #/' | sort -u
> Copyright (c) 2026 The gpufilter authors; MIT License
> built in #
> gpufilter 0.1.0
# Terminals get names without newlines and escape sequences; JSON contains them escaped.
$ printf 'P5\n2 1\n255\n\1\2' >$'a\e[31m\nb.pgm'; for command in info "hist -n 1" "axis-sum --csv -v"; do gpufilter $command $'a\e[31m\nb.pgm' 2>&1 | grep -o '^.*b.pgm: [A-Z0-9]*'; done
> a?[31m?b.pgm: PGM
> a?[31m?b.pgm: 2
> a?[31m?b.pgm: 0
$ gpufilter dot $'a\e[31m\nb.pgm' $'a\e[31m\nb.pgm' | head -n 1; gpufilter info --json $'a\e[31m\nb.pgm' | grep -o '"file": "[^"]*"'
> a?[31m?b.pgm, a?[31m?b.pgm: 2x1 grey u8, by cpu
> "file": "a\u001b[31m\u000ab.pgm"
# C1 control characters, alone or as two bytes of UTF-8, are also removed. Other names are unchanged; CSV is exact unless it is on a terminal.
$ for name in $'a\xc2\x9b31m\x7f.pgm' $'b\x9b31m.pgm' 'Über 画像.pgm'; do cp $'a\e[31m\nb.pgm' "$name"; gpufilter info "$name" | cut -d : -f 1; gpufilter info "--$name" 2>&1 | cut -d : -f 2; gpufilter info "x$name" 2>&1 | cut -d : -f 2; gpufilter info --json "$name" | grep -o '"file": "[^"]*"'; done
> a??31m?.pgm
>  --a??31m?.pgm
>  xa??31m?.pgm
> "file": "a\u009b31m\u007f.pgm"
> b?31m.pgm
>  --b?31m.pgm
>  xb?31m.pgm
> "file": "b\ufffd31m.pgm"
> Über 画像.pgm
>  --Über 画像.pgm
>  xÜber 画像.pgm
> "file": "Über 画像.pgm"
$ gpufilter axis-sum -j 1 --csv $'a\e[31m\nb.pgm' $'a\xc2\x9b31m\x7f.pgm' 2>&1 | od -An -c | head -n 2
>    f   i   l   e   ,   y   ,   g   r   e   y  \n   "   a 033   [
>    3   1   m  \n   b   .   p   g   m   "   ,   0   ,   3  \n   a
$ python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' gpufilter axis-sum -q -j 1 --csv $'a\e[31m\nb.pgm' $'a\xc2\x9b31m\x7f.pgm' | tr -d '\r'
> file,y,grey
> "a?[31m?b.pgm",0,3
> a??31m?.pgm,0,3
# Invalid UTF-8 is printed as '?' for people; JSON and CSV in files keep the bytes exactly.
$ for name in $'a\xff\x9b2Jb.png' $'a\xe0\x9b2Jb.png' $'a\xc1\x9b2Jb.png' $'\xe7\x94\xbb\x9b2J.png'; do gpufilter info "$name"; done
! gpufilter: a??2Jb.png: cannot open: No such file or directory
! gpufilter: a??2Jb.png: cannot open: No such file or directory
! gpufilter: a??2Jb.png: cannot open: No such file or directory
! gpufilter: 画?2J.png: cannot open: No such file or directory
[1]
$ cp $'a\e[31m\nb.pgm' $'n\xff\x9b.pgm'; gpufilter info --json $'n\xff\x9b.pgm' | grep -o '"file.*"kind"'; gpufilter dot --json $'n\xff\x9b.pgm' 'Über 画像.pgm' | grep -o '"files.*"image"'; gpufilter smooth --json $'n\xff\x9b.pgm' $'o\xff.pgm' | grep -o '"output.*"image"'
> "file": "n\ufffd\ufffd.pgm", "file_encoded": "n%FF%9B.pgm", "kind"
> "files": ["n\ufffd\ufffd.pgm", "Über 画像.pgm"], "files_encoded": ["n%FF%9B.pgm", "%C3%9Cber%20%E7%94%BB%E5%83%8F.pgm"], "image"
> "output": "o\ufffd.pgm", "output_encoded": "o%FF.pgm", "image"
! gpufilter: n??.pgm: brightness x1.32, clipped samples not counted; --keep-brightness avoids it
$ gpufilter hist -q -x 1 --bins 2 --out $'s\xff.csv' --json $'n\xff\x9b.pgm' | grep -o '"out.*"mask"'
> "out": "s\ufffd.csv", "out_encoded": "s%FF.csv", "mask"
$ gpufilter smooth --progress json $'absent\xff.pgm' out.pgm 2>&1 | grep -o '"file".*"error"'
> "file": "absent\ufffd.pgm", "file_encoded": "absent%FF.pgm", "error"
$ python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' gpufilter axis-sum -q -j 1 --csv $'n\xff\x9b.pgm' 'Über 画像.pgm' | tr -d '\r'
> file,y,grey
> n??.pgm,0,3
> Über 画像.pgm,0,3
$ gpufilter axis-sum -j 1 --csv -q $'n\xff\x9b.pgm' 'Über 画像.pgm' | sed -n 2p | od -An -c
>    n 377 233   .   p   g   m   ,   0   ,   3  \n
# A file that fails in a batch is reported once.
$ gpufilter hist -q -n 1 $'absent\xff\x9b.png' $'absent\n.png' $(printf 'l%.0s' {1..1200}).png
! gpufilter: absent??.png: cannot open: No such file or directory
! gpufilter: absent?.png: cannot open: No such file or directory
! gpufilter: lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll...llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll.png: cannot open: File name too long
[1]
# Contradictory options.
$ gpufilter hist -q -v -n 1 samples/page.png
! gpufilter: --quiet: cannot be combined with --verbose
[2]
# Numbers have a decimal point in any locale.
$ LC_ALL=de_DE.UTF-8 gpufilter axis-sum --csv samples/ramp.pfm
> y,grey
> 0,9833.759999893606
> 1,9833.759999893606
> 2,9833.759999893606
> 3,9833.759999893606
