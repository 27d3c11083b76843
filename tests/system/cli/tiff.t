# Pages of a TIFF: a note if there are more, none with --page or -q. Thumbnails and masks are not pages.
$ printf 'II*\0\10\0\0\0\7\0\0\1\4\0\1\0\0\0\2\0\0\0\1\1\4\0\1\0\0\0\2\0\0\0\2\1\3\0\1\0\0\0\10\0\0\0\6\1\3\0\1\0\0\0\1\0\0\0\21\1\4\0\1\0\0\0\274\0\0\0\26\1\4\0\1\0\0\0\2\0\0\0\27\1\4\0\1\0\0\0\4\0\0\0b\0\0\0\7\0\0\1\4\0\1\0\0\0\2\0\0\0\1\1\4\0\1\0\0\0\2\0\0\0\2\1\3\0\1\0\0\0\10\0\0\0\6\1\3\0\1\0\0\0\0\0\0\0\21\1\4\0\1\0\0\0\274\0\0\0\26\1\4\0\1\0\0\0\2\0\0\0\27\1\4\0\1\0\0\0\4\0\0\0\0\0\0\0\20 0@' >two.tif; gpufilter info two.tif; gpufilter hist --csv -n 2 two.tif; gpufilter hist --csv -n 2 --page 1 two.tif
> two.tif: TIF, 2x2 grey u8 (8-bit grey, strips, uncompressed, page 1 of 2), 4 bytes of pixels
> bin,from,to,grey
> 0,0,127,4
> 1,128,255,0
> bin,from,to,grey
> 0,0,127,4
> 1,128,255,0
! gpufilter: two.tif: image 1 of 2; --page selects another
$ gpufilter hist -q two.tif; gpufilter hist --json two.tif 2>/dev/null | grep -o '"pages": 2'; gpufilter info --page 2 two.tif; gpufilter hist --csv -n 2 --page 2 - <two.tif
> "pages": 2
> two.tif: TIF, 2x2 grey u8 (8-bit grey, 0 is white, strips, uncompressed, page 2 of 2), 4 bytes of pixels
> bin,from,to,grey
> 0,0,127,0
> 1,128,255,4
$ gpufilter hist --page 3 two.tif
! gpufilter: two.tif: has no page 3; choose one from 1 to 2 with --page
[1]
$ gpufilter hist --page 0 two.tif
! gpufilter: --page '0': must be an integer from 1 to 1048576, or all
[2]
$ gpufilter hist --page 2 samples/card.png
! gpufilter: samples/card.png: has no pages; omit --page
[1]
$ mkdir pages; cp two.tif pages/a.tif; cp two.tif pages/b.TIFF; gpufilter smooth -R pages -O pages-out --name '{stem}.pgm' 2>&1 | sed 's/ in .*/ in #/'; ls pages-out
> 2 done, 0 failed, 0 skipped in #
>   brightness x1.32, clipped samples not counted; --keep-brightness avoids it
> gpufilter: first images of 2 files with several; --page selects another
> a.pgm
> b.pgm
# Also if the image is cropped or converted.
$ gpufilter hist --csv -n 1 --crop 0,0,1,1 two.tif; gpufilter smooth --depth 16 two.tif - | wc -c
> bin,from,to,grey
> 0,0,255,1
> 78
! gpufilter: two.tif: image 1 of 2; --page selects another
! gpufilter: two.tif: image 1 of 2; --page selects another
$ gpufilter compare --page 2 two.tif two.tif
> two.tif, two.tif: 2x2 grey u8, by cpu
> 
> same: 4 samples
# All pages.
$ gpufilter smooth --page all two.tif all.tif -v 2>&1 | grep -o '2x2 grey u8 and 1 more page in'; gpufilter info all.tif; gpufilter hist --csv -n 2 --page 2 all.tif
> 2x2 grey u8 and 1 more page in
> all.tif: TIF, 2x2 grey u8 (8-bit grey, strips, Deflate, predictor 2, page 1 of 2), 4 bytes of pixels
> bin,from,to,grey
> 0,0,127,0
> 1,128,255,4
$ gpufilter smooth --page all --dry-run two.tif none.tif; ls none.tif
> none.tif
! ls: cannot access 'none.tif': No such file or directory
[2]
$ gpufilter smooth -q --page all two.tif - --format tif | cmp - all.tif
$ gpufilter smooth --page all - none.tif <two.tif
! gpufilter: standard input: --page all cannot read 2 pages from a pipe; name a file
[1]
$ gpufilter smooth --page all two.tif none.png
! gpufilter: none.png: --page all: the input has 2 pages, and this format holds one image; write .tif
[2]
$ gpufilter hist --page all --csv -n 2 two.tif; gpufilter hist --page all --csv -n 2 two.tif two.tif 2>&1 | grep -v done; gpufilter axis-sum --page all two.tif; gpufilter hist --page all --json two.tif | grep -o '"page": [^,]*'; gpufilter hist --page all -n 2 -x 1 -o x.csv two.tif; gpufilter dot --page all two.tif two.tif
> page,bin,from,to,grey
> 1,0,0,127,4
> 1,1,128,255,0
> 2,0,0,127,0
> 2,1,128,255,4
> all,0,0,127,4
> all,1,128,255,4
> file,bin,from,to,grey
> two.tif,0,0,127,4
> two.tif,1,128,255,4
> two.tif,0,0,127,4
> two.tif,1,128,255,4
> two.tif, page 1: 2x2 grey u8, by cpu
> 
> y  grey
> 0    48
> 1   112
> 
> channel  sum  mean
> grey     160    40
> 
> two.tif, page 2: 2x2 grey u8, by cpu
> 
> y  grey
> 0   462
> 1   398
> 
> channel  sum  mean
> grey     860   215
> 
> two.tif, page all: 2x4 grey u8, by cpu
> 
> y  grey
> 0    48
> 1   112
> 2   462
> 3   398
> 
> channel   sum   mean
> grey     1020  127.5
> "page": 1
> "page": 2
> "page": "all"
! gpufilter: --page all: plots, extracted samples and ranks of MPI are those of one page; choose it with --page N
! gpufilter: --page all: dot has two inputs; choose a page with --page N
[2]
$ gpufilter info --page all two.tif
! gpufilter: two.tif: --page all: only filters read all pages
[2]
$ gpufilter smooth -qR pages -O all-pages --page all; for file in all-pages/*; do cmp $file all.tif; done; ls all-pages
> a.tif
> b.TIFF
# A number is not a word: GF_ALL_PAGES is 4294967295.
$ gpufilter smooth --page 4294967295 two.tif none.tif
! gpufilter: --page '4294967295': must be an integer from 1 to 1048576, or all
[2]
# Group 4: two white rows, and no third one. A missing row is damage, also with --quiet.
$ printf 'II*\0\10\0\0\0\7\0\0\1\4\0\1\0\0\0\10\0\0\0\1\1\4\0\1\0\0\0\3\0\0\0\3\1\3\0\1\0\0\0\4\0\0\0\6\1\3\0\1\0\0\0\0\0\0\0\21\1\4\0\1\0\0\0b\0\0\0\26\1\4\0\1\0\0\0\3\0\0\0\27\1\4\0\1\0\0\0\4\0\0\0\0\0\0\0\300\4\0\100' >fax.tif; gpufilter hist -qn 1 --csv fax.tif; gpufilter hist --json -q fax.tif 2>/dev/null | grep -o '"damage": "[^"]*"'; gpufilter hist --strict fax.tif
> bin,from,to,grey
> 0,0,255,24
> "damage": "1 of 3 rows of the fax are damaged; missing ones are blank"
! gpufilter: fax.tif: warning: 1 of 3 rows of the fax are damaged; missing ones are blank; --strict fails instead
! gpufilter: fax.tif: 1 of 3 rows of the fax are damaged; missing ones are blank; without --strict, this is a warning
[1]
# Of two images, the message says which one is damaged, and blames neither for the pages of the other.
$ gpufilter smooth -qk fax.tif whole.tif 2>/dev/null; gpufilter compare -q whole.tif fax.tif; gpufilter compare --json fax.tif whole.tif 2>/dev/null | grep -o '"damage": "[^:]*:'
> "damage": "first image:
! gpufilter: whole.tif, fax.tif: warning: second image: 1 of 3 rows of the fax are damaged; missing ones are blank; --strict fails instead
$ gpufilter smooth -qk two.tif one.tif; gpufilter dot one.tif two.tif | head -n 1
> one.tif, two.tif: 2x2 grey u8, by cpu
! gpufilter: one.tif, two.tif: image 1 of 2; --page selects another
