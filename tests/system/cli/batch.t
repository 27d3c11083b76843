# Many inputs into a new directory; the outputs equal those of single runs.
$ gpufilter smooth samples/page.png samples/cutout.png --out-dir a/b -k 2>&1 | sed 's/in .*/in #/'
> 2 done, 0 failed, 0 skipped in #
$ ls -A a/b
> cutout.png
> page.png
$ for name in page cutout; do gpufilter smooth -k samples/$name.png - | cmp - a/b/$name.png; done
# Without --force or --resume, existing outputs are kept.
$ echo precious >a/b/page.png; gpufilter smooth -k samples/page.png samples/scene.png -O a/b -q
! gpufilter: a/b/page.png: already exists (1 of 1 existing outputs); use --force to replace them, or --resume to skip finished outputs
[1]
$ cat a/b/page.png
> precious
$ gpufilter smooth -k samples/page.png --out-dir a/b --force -q; gpufilter smooth -k samples/page.png - | cmp - a/b/page.png
# Many existing outputs are one line; a failed file has a record in JSON, before the run and in it.
$ gpufilter smooth -k samples/page.png samples/cutout.png -O a/b
! gpufilter: a/b/page.png: already exists (1 of 2 existing outputs); use --force to replace them, or --resume to skip finished outputs
[1]
$ gpufilter smooth -k samples/page.png samples/cutout.png samples/card.png -O a/b 2>&1 | sed 's/in .*/in #/'
> gpufilter: a/b/page.png: already exists (1 of 2 existing outputs); use --force to replace them, or --resume to skip finished outputs
> 1 done, 2 failed, 0 skipped in #
$ echo text >a/bad.png; gpufilter smooth -k --json a/bad.png samples/card.png -O a/b -j 1 2>/dev/null | grep -o '"files.*"status.*\|"files".*"image"'; rm a/b/card.png
> "files": ["samples/card.png"], "output": "a/b/card.png", "status": 1, "error": "a/b/card.png: already exists"}
> "files": ["a/bad.png"], "output": "a/b/bad.png", "status": 1, "error": "a/bad.png: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw"}
$ gpufilter hist --json a/bad.png absent.png samples/card.png -j 1 2>/dev/null | grep -o '"files.*"status.*\|"files".*"image"'
> "files": ["a/bad.png"], "status": 1, "error": "a/bad.png: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw"}
> "files": ["absent.png"], "status": 1, "error": "absent.png: cannot open: No such file or directory"}
> "files": ["samples/card.png"], "image"
# --resume skips finished outputs and makes the others.
$ gpufilter smooth -k samples/{page,cutout,scene,gradient16}.png -O a/b --resume 2>&1 | sed 's/in .*/in #/'
> 1 done, 0 failed, 3 skipped in #
$ gpufilter smooth -k samples/{page,cutout,scene,gradient16}.png -O a/b --resume --threads 7 --backend golden --rows-per-strip 3 2>&1 | sed 's/in .*/in #/'
> 0 done, 0 failed, 4 skipped in #
# Outputs made with other settings also count as finished: use another directory or --force.
$ gpufilter normalize samples/{page,cutout}.png -O a/b --resume 2>&1 | sed 's/in .*/in #/'; gpufilter normalize samples/{page,cutout}.png -O a/b --force -q; gpufilter normalize samples/page.png - | cmp - a/b/page.png
> 0 done, 0 failed, 2 skipped in #
# A changed input is processed again; an output that is not newer is replaced.
$ mkdir in; cp samples/page.png samples/cutout.png in; gpufilter smooth in/*.png -O c -q; touch in/page.png; gpufilter smooth in/*.png -O c --resume 2>&1 | sed 's/in .*/in #/'
> 1 done, 0 failed, 1 skipped in #
>   brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
$ touch -r in/cutout.png c/cutout.png; gpufilter smooth in/*.png -O c --resume 2>&1 | sed 's/in .*/in #/'
> 1 done, 0 failed, 1 skipped in #
>   brightness x1.452, 22.3 % of samples clipped; --keep-brightness avoids it
$ cp samples/page.png f.png; touch -d 2099-01-01 f.png; gpufilter smooth f.png -O c -q; gpufilter smooth f.png -O c --resume 2>&1 | sed 's/in .*/in #/'
> 1 done, 0 failed, 0 skipped in #
>   brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
# Any newer file counts as finished, except an empty one.
$ mkdir e; echo mine >e/page.png; gpufilter smooth in/page.png -O e --resume -q; cat e/page.png; : >e/page.png; gpufilter smooth in/page.png -O e --resume -q; cmp c/page.png e/page.png
> mine
$ cp in/page.png ok.png; echo text >in/page.png; gpufilter smooth in/*.png -O c --resume 2>&1 | sed 's/skipped in .*/skipped in #/'; gpufilter smooth ok.png - | cmp - c/page.png
> gpufilter: in/page.png: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
> 0 done, 1 failed, 1 skipped in #
! gpufilter: ok.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
$ cp ok.png in/page.png; gpufilter smooth in/*.png -O c --resume 2>&1 | sed 's/in .*/in #/'
> 1 done, 0 failed, 1 skipped in #
>   brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
# Inputs and outputs in the same directory, with --force; --resume cannot detect finished outputs there.
$ cp -r in self; gpufilter smooth self/*.png --out-dir self --force -q; gpufilter smooth in/page.png - | cmp - self/page.png
! gpufilter: in/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth self/*.png --out-dir self --force --resume; gpufilter smooth self/*.png --out-dir self --resume; gpufilter smooth in/page.png - | cmp - self/page.png
! gpufilter: self/cutout.png: its output replaces it, which --resume does not support; use another --out-dir or --name
! gpufilter: self/cutout.png: its output replaces it, which --resume does not support; use another --out-dir or --name
! gpufilter: in/page.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
# A corrupt file does not stop the batch; each failure is reported.
$ echo text >in/bad.png; : >in/empty.png; gpufilter smooth in/*.png absent.png -O f --threads 1 2>&1 | sed 's/skipped in .*/skipped in #/'; ls f
> gpufilter: in/bad.png: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
> gpufilter: in/empty.png: the file is empty
> gpufilter: absent.png: cannot open: No such file or directory
> 2 done, 3 failed, 0 skipped in #
>   brightness x1.452, 63.1 % of samples clipped; --keep-brightness avoids it
> cutout.png
> page.png
$ gpufilter smooth in/*.png absent.png -O g --quiet 2>/dev/null; echo $?; gpufilter smooth in/bad.png -O g --keep-going -q
> 1
! gpufilter: in/bad.png: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
[1]
$ gpufilter smooth in/bad.png in/page.png in/cutout.png -O h --fail-fast --threads 1 2>&1 | sed 's/started in .*/started in #/'; ls h
> gpufilter: in/bad.png: unsupported image format; supported: PNG, PBM, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA (by its extension), PSD, GIF, HDR; rows without a header with --raw
> 0 done, 1 failed, 0 skipped, 2 not started in #
$ gpufilter smooth . in/page.png -O h --fail-fast; ls h
! gpufilter: .: is a directory; use --recursive to process its images
# One JSON line for each output.
$ gpufilter smooth in/page.png in/bad.png in/cutout.png -O i --json --threads 1 2>/dev/null | grep -o '"files.*"image'
> "files": ["in/page.png"], "output": "i/page.png", "image
> "files": ["in/cutout.png"], "output": "i/cutout.png", "image
# Templates for names.
$ gpufilter smooth in/page.png ok.png -O n -q --name '{stem}-smooth{ext}'; gpufilter smooth in/page.png ok.png -O n -q --name '{{{index:3}}}_{name}.pgm'; gpufilter smooth in/page.png -O n -q --format tga; cp ok.png .hid.png; cp ok.png plain; cp ok.png two.dots.PNG; gpufilter smooth .hid.png plain two.dots.PNG -O n -q; ls -A n
> .hid.png
> ok-smooth.png
> page-smooth.png
> page.tga
> plain.png
> two.dots.PNG
> {001}_page.png.pgm
> {002}_ok.png.pgm
$ for template in '{stem' 'stem}' '{}' '{Stem}{ext}' '{index:}' '{index:0}' '{index:21}' '{index:999}' '{stem}}' 'a/{stem}{ext}' ''; do gpufilter smooth ok.png -O n --name "$template"; done
! gpufilter: --name '{stem': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name 'stem}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name '{}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name '{Stem}{ext}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name '{index:}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name '{index:0}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name '{index:21}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name '{index:999}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name '{stem}}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
! gpufilter: --name 'a/{stem}{ext}': must not contain a directory; use --out-dir for the directory; --recursive keeps subdirectories
! gpufilter: --name '': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
[2]
$ gpufilter smooth ok.png -O n --name '{stem}'; gpufilter smooth ok.png -O n --name '{stem}.gif'; gpufilter smooth ok.png -O n -q --name '{stem}' --format png; gpufilter smooth ok.png - | cmp - n/ok
! gpufilter: --name: 'ok': no extension; end the template with {ext} or a known extension such as .png, or use --format
! gpufilter: --name: 'ok.gif': cannot write .gif; end the template with {ext} or a known extension such as .png, or use --format
! gpufilter: ok.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
# Two inputs with the same output are rejected before the batch starts.
$ gpufilter smooth in/page.png samples/page.png -O x; gpufilter smooth in/page.png in/../in/page.png -O x; gpufilter smooth in/page.png ok.png -O x --name 'same{ext}'; ls x
! gpufilter: x/page.png: is the output of both in/page.png and samples/page.png; use a --name with {index}, such as '{index}-{stem}{ext}'
! gpufilter: x/page.png: is the output of both in/page.png and in/../in/page.png; use a --name with {index}, such as '{index}-{stem}{ext}'
! gpufilter: x/same.png: is the output of both in/page.png and ok.png; use a --name with {index}, such as '{index}-{stem}{ext}'
! ls: cannot access 'x': No such file or directory
[2]
# Also rejected: an output that is the input of another, or a link to another output.
$ mkdir m; cp ok.png m/1.png; cp in/cutout.png m/2.png; gpufilter smooth m/2.png m/1.png -O m --force --name '{index}{ext}'; cmp ok.png m/1.png
! gpufilter: m/2.png: is an input that the output of m/1.png would replace; use another --out-dir or --name
$ ln -s 1.png m/3.png; gpufilter smooth m/1.png m/3.png -O m --force; cmp ok.png m/1.png; rm m/3.png; ln m/1.png m/3.png; gpufilter smooth m/1.png m/3.png -O m --force -q; cmp m/1.png m/3.png; gpufilter smooth ok.png - | cmp - m/1.png
! gpufilter: m/3.png: is the output of both m/1.png and m/3.png; use a --name with {index}, such as '{index}-{stem}{ext}'
! gpufilter: ok.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
# Also rejected: two outputs that a link to a directory makes the same, even if the directory does not exist yet.
$ mkdir -p w/a w/b w/out/a; cp ok.png w/a/x.png; cp in/cutout.png w/b/x.png; ln -s a w/out/b; gpufilter smooth -R w/a w/b/x.png -O w/out -q --name '{index}{ext}'; gpufilter smooth -R w -O w/out --force; ls -A w/out w/out/a
> w/out:
> 1.png
> 2.png
> a
> b
> 
> w/out/a:
! gpufilter: w/out/b/x.png: is the output of both w/a/x.png and w/b/x.png; use a --name with {index}, such as '{index}-{stem}{ext}'
$ mkdir w/a/deep w/b/deep; mv w/a/x.png w/a/deep; mv w/b/x.png w/b/deep; gpufilter smooth -R w -O w/out; ls w/out/a; rm w/out/b; gpufilter smooth -R w -O w/out -q; ls w/out/a w/out/b
> w/out/a:
> deep
> 
> w/out/b:
> deep
! gpufilter: w/out/b/deep/x.png: is the output of both w/a/deep/x.png and w/b/deep/x.png; use a --name with {index}, such as '{index}-{stem}{ext}'
# Directories are read only with -R. The tree is kept; hidden files, links to directories and the outputs are skipped.
$ mkdir -p t/a/deep t/.hidden t/b; cp ok.png t/1.png; cp ok.png t/a/2.PGM; cp ok.png t/a/deep/3.jpeg; cp ok.png t/.hidden/4.png; cp ok.png t/.5.png; echo no >t/notes.txt; ln -s .. t/b/loop; ln -s ../1.png t/b/6.png; mkfifo t/7.png
$ gpufilter smooth t ok.png -O tree -q; ls tree
> ok.png
! gpufilter: t: is a directory; use --recursive to process its images
$ gpufilter smooth -R t -O tree --json --threads 1 2>/dev/null | grep -o '"files.*"image'
> "files": ["t/1.png"], "output": "tree/1.png", "image
> "files": ["t/a/2.PGM"], "output": "tree/a/2.PGM", "image
> "files": ["t/a/deep/3.jpeg"], "output": "tree/a/deep/3.jpeg", "image
> "files": ["t/b/6.png"], "output": "tree/b/6.png", "image
$ gpufilter smooth -R t/ -O t/out -q; (cd t/out; find . -type f | sort); gpufilter smooth --recursive t -O t/out --resume 2>&1 | sed 's/in .*/in #/'
> ./1.png
> ./a/2.PGM
> ./a/deep/3.jpeg
> ./b/6.png
> 0 done, 0 failed, 6 skipped in #
>   1 file skipped: unsupported format (.txt); 1 link to directories skipped
# A dry run lists the outputs and writes no files.
$ gpufilter smooth --dry-run samples/card.png dry.png; gpufilter smooth --dry-run samples/card.png samples/page.png; gpufilter smooth --dry-run samples/card.png dry.webp; gpufilter smooth --dry-run absent.png dry.png; gpufilter smooth --dry-run --json samples/card.png dry.png; ls dry.png
> dry.png
! gpufilter: samples/page.png: already exists; use --force to replace it
! gpufilter: dry.webp: cannot write WebP; use an extension such as .png, .pam or .pfm, or --format
! gpufilter: absent.png: cannot open: No such file or directory
! gpufilter: --dry-run: cannot be combined with --json
! ls: cannot access 'dry.png': No such file or directory
[2]
$ gpufilter hist --dry-run -x 3 samples/card.png --out v.csv --mask m.png; gpufilter hist --dry-run samples/card.png; gpufilter compare --dry-run samples/card.png samples/card.png --diff d.png; gpufilter smooth --dry-run samples/gradient16.png dry.jpg; ls v.csv m.png d.png
> v.csv
> m.png
> d.png
! gpufilter: dry.jpg: JPEG supports only u8 samples, and this image is u16; write .png or give --depth 8
! ls: cannot access 'v.csv': No such file or directory
! ls: cannot access 'm.png': No such file or directory
! ls: cannot access 'd.png': No such file or directory
[2]
$ gpufilter smooth --dry-run samples/{card,page}.png absent.png -O dry --name 'a-{name}'; ls dry; gpufilter smooth -k samples/page.png -O dry -q; gpufilter smooth -k --dry-run samples/{card,page}.png -O dry --resume; gpufilter smooth --dry-run samples/{card,page}.png -O dry -q; gpufilter hist --dry-run samples/{card,page}.png; ls -A dry; rm -r dry
> dry/a-card.png
> dry/a-page.png
> dry/card.png
> dry/card.png
> page.png
! gpufilter: absent.png: cannot open: No such file or directory
! dry run: 2 to do, 1 failed, 0 skipped
! ls: cannot access 'dry': No such file or directory
! dry run: 1 to do, 0 failed, 1 skipped
! gpufilter: dry/page.png: already exists (1 of 1 existing outputs); use --force to replace them, or --resume to skip finished outputs
! dry run: 2 to do, 0 failed, 0 skipped
# A dry run also detects obstacles to outputs; standard output contains only data.
$ echo text >plain; mkdir -p dry/card.png; ln -s nowhere dry/page.png; for out in plain plain/in dry new/deep; do gpufilter smooth -k --dry-run --force samples/{card,page}.png -O $out; echo $?; done; ls new; gpufilter smooth -k --dry-run --format png samples/card.png - | wc -c; rm -r plain dry
> 1
> 1
> 1
> new/deep/card.png
> new/deep/page.png
> 0
> 0
! gpufilter: plain: cannot create the directory: Not a directory
! dry run: 0 to do, 1 failed, 0 skipped
! gpufilter: plain/in: cannot create the directory: Not a directory
! dry run: 0 to do, 1 failed, 0 skipped
! gpufilter: dry/card.png: is a directory
! gpufilter: dry/page.png: is a dangling symbolic link
! dry run: 0 to do, 2 failed, 0 skipped
! dry run: 2 to do, 0 failed, 0 skipped
! ls: cannot access 'new': No such file or directory
! standard output
# A name with the extension of a format that cannot be written.
$ for name in '{stem}.webp' '{stem}'; do gpufilter smooth -k samples/card.png -O out --name "$name"; done; ls out
! gpufilter: --name: 'card.webp': cannot write .webp; end the template with {ext} or a known extension such as .png, or use --format
! gpufilter: --name: 'card': no extension; end the template with {ext} or a known extension such as .png, or use --format
! ls: cannot access 'out': No such file or directory
[2]
# Clipped samples are counted for PNG, not for PPM.
$ mkdir mix; cp samples/card.png mix; gpufilter smooth -q samples/scene.png mix/scene.ppm; gpufilter smooth -R mix -O mixed 2>&1 | tail -n 1; rm -r mix mixed
>   brightness x1.452, 17.6 % of samples clipped (not counted in all images); --keep-brightness avoids it
# Files without an image extension are counted; if no image is found, the run fails and creates no directory.
$ mkdir -p odd/in; touch odd/{a.jp2,b.webp,c.JP2,e.my-notes} odd/in/{d.avif,README,.hidden.xyz} odd/$'\x9bq.\x9bq'; for line in "-R odd -O none" "-R odd -O none -q" "-R odd -O none --raw 3x3:u8" "-O none --files-from /dev/null" "-O none -R odd odd/in --shard 2/2"; do gpufilter smooth $line; echo $?; done; gpufilter hist -R odd/in; ls none
> 1
> 1
> 1
> 1
> 1
! gpufilter: odd: no images found; 7 files skipped: unsupported format (.jp2, .webp, .avif)
! gpufilter: odd: no images found; 7 files skipped: unsupported format (.jp2, .webp, .avif)
! gpufilter: odd: no images found; 7 files skipped: no extension .raw (.jp2, .webp, .avif)
! gpufilter: --files-from '/dev/null': no images found
! gpufilter: odd and others: no images found; 9 files skipped: unsupported format (.jp2, .webp, .avif)
! gpufilter: odd/in: no images found; 2 files skipped: unsupported format (.avif)
! ls: cannot access 'none': No such file or directory
[2]
$ cp samples/card.png odd; for option in "-k" "-k --resume" "-q -k -f"; do gpufilter smooth -R odd -O some $option 2>&1 | sed 's/ in .*/ in #/'; done; rm -r odd some
> 1 done, 0 failed, 7 skipped in #
>   7 files skipped: unsupported format (.jp2, .webp, .avif)
> 0 done, 0 failed, 8 skipped in #
>   7 files skipped: unsupported format (.jp2, .webp, .avif)
$ gpufilter smooth -R t -O t/out/ --name '{stem}-{index}{ext}' -q; (cd t/out; find . -type f | sort)
> ./1-1.png
> ./1.png
> ./a/2-2.PGM
> ./a/2.PGM
> ./a/deep/3-3.jpeg
> ./a/deep/3.jpeg
> ./b/6-4.png
> ./b/6.png
$ gpufilter smooth -R t -O t; gpufilter smooth -R t t/a -O both -q; (cd both; find . -type f | sort); gpufilter smooth -R t t/1.png -O x
> ./1.png
> ./2.PGM
> ./a/2.PGM
> ./a/deep/3.jpeg
> ./b/6.png
> ./deep/3.jpeg
> ./out/1-1.png
> ./out/1.png
> ./out/a/2-2.PGM
> ./out/a/2.PGM
> ./out/a/deep/3-3.jpeg
> ./out/a/deep/3.jpeg
> ./out/b/6-4.png
> ./out/b/6.png
! gpufilter: t: is also --out-dir, and its outputs would be inputs of the next run; use another --out-dir, or name the files
! gpufilter: x/1.png: is the output of both t/1.png and t/1.png; use a --name with {index}, such as '{index}-{stem}{ext}'
[2]
$ ln -s absent.png t/b/8.png; ln -s absent t/b/notes; gpufilter smooth -R t/b -O broken -q; ls broken; rm t/b/8.png
> 6.png
! gpufilter: t/b/8.png: cannot open: No such file or directory
$ mkdir none; gpufilter smooth -R none -O both2 2>&1 | sed 's/in .*/in #/'; ls -A both2
> gpufilter: none: no images found
! ls: cannot access 'both2': No such file or directory
[2]
# Lists of names.
$ printf 'ok.png\n\nin/page.png' | gpufilter smooth --files-from - -O l -q; ls l
> ok.png
> page.png
$ cp ok.png 'a b.png'; cp ok.png ./-r.png; cp ok.png ./-; cp ok.png $'new\nline.png'; cp ok.png $'\xff.png'; printf '%s\0' 'a b.png' -r.png - $'new\nline.png' $'\xff.png' >list; gpufilter smooth -0 --files-from list -O odd -q; ls -A odd | od -An -c; gpufilter smooth -0 --files-from=list -O odd --resume 2>&1 | sed 's/in .*/in #/'
>    -   .   p   n   g  \n   -   r   .   p   n   g  \n   a       b
>    .   p   n   g  \n   n   e   w  \n   l   i   n   e   .   p   n
>    g  \n 377   .   p   n   g  \n
> 0 done, 0 failed, 5 skipped in #
$ gpufilter smooth --files-from list -O odd; gpufilter smooth --files-from absent -O odd; gpufilter smooth --files-from /dev/null -O odd2 2>&1 | sed 's/in .*/in #/'
> gpufilter: --files-from '/dev/null': no images found
! gpufilter: --files-from 'list': contains a NUL byte; use --null for NUL-terminated names
! gpufilter: absent: cannot open: No such file or directory
# The length of a name is limited to that of a path; the rest of the list is not read.
$ { printf 'ok.png\n\n'; head -c 4095 /dev/zero | tr '\0' a; } | gpufilter smooth --files-from - -O l --force 2>&1 | sed 's/a[a.]*a:/a:/; s/in [0-9].*/in #/'
> gpufilter: a: cannot open: File name too long
> 1 done, 1 failed, 0 skipped in #
>   brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
$ { printf 'ok.png\n\n'; head -c 4096 /dev/zero | tr '\0' a; } >long; gpufilter smooth --files-from long -O no; tr '\n' '\0' <long >long0; gpufilter smooth --files-from long0 -0 -O no; ls no
! gpufilter: --files-from 'long': line 3 exceeds the maximum path length of 4095 bytes; write one name per line
! gpufilter: --files-from 'long0': name 3 exceeds the maximum path length of 4095 bytes; omit --null if names are separated by newlines
! ls: cannot access 'no': No such file or directory
[2]
$ head -c 100000000 /dev/zero | tr '\0' a | gpufilter smooth --files-from - -O no; echo ${PIPESTATUS[1]}
> 141
! gpufilter: --files-from 'standard input': line 1 exceeds the maximum path length of 4095 bytes; write one name per line
$ printf 't\n' | gpufilter smooth --files-from - -O l -q; printf 't\n' | gpufilter hist -R --files-from - --csv -q -n 2 | head -n 2
> file,bin,from,to,grey
> t/1.png,0,0,127,44398
! gpufilter: t: is a directory; use --recursive to process its images
# Usage.
$ gpufilter smooth -O x; gpufilter smooth - -O x; gpufilter smooth ok.png -O x --null; gpufilter smooth ok.png -O x --keep-going --fail-fast; gpufilter smooth ok.png -O x -k -w 0
! gpufilter: smooth: expected input files; see 'gpufilter smooth --help'
! gpufilter: --out-dir: standard input has no file name for its output; filter it in a separate run
! gpufilter: --null: requires --files-from
! gpufilter: --fail-fast: cannot be combined with --keep-going
! gpufilter: --keep-brightness: cannot undo a --weight below 1e-30; use a larger weight
[2]
$ gpufilter smooth ok.png out.png --name a{ext}; gpufilter smooth ok.png out.png --resume; gpufilter smooth --files-from list ok.png; gpufilter smooth -R t out.png; ls x out.png
! gpufilter: --name: requires --out-dir
! gpufilter: --resume: requires --out-dir
! gpufilter: --files-from: requires --out-dir
! gpufilter: --recursive: requires --out-dir
! ls: cannot access 'x': No such file or directory
! ls: cannot access 'out.png': No such file or directory
[2]
$ gpufilter dot ok.png ok.png ok.png; gpufilter compare ok.png ok.png --out-dir x; gpufilter hist ok.png --out-dir x
! gpufilter: dot: expected A B, got 3 operands; see 'gpufilter dot --help'
! gpufilter: --out-dir: unknown option of compare (it is an option of smooth); see 'gpufilter compare --help'
! gpufilter: --out-dir: unknown option of hist (it is an option of smooth); see 'gpufilter hist --help'
[2]
$ gpufilter hist ok.png in/page.png --extract 0 --out v.csv; gpufilter hist ok.png in/page.png --mask m.png --extract 0; gpufilter axis-sum ok.png in/page.png --plot p.png; gpufilter hist - - <ok.png; gpufilter hist - --files-from - <list
! gpufilter: --out: names one file, and there may be many inputs; run them one by one
! gpufilter: --mask: names one file, and there may be many inputs; run them one by one
! gpufilter: --plot: not supported for several inputs; run the filter once per input
! gpufilter: hist: standard input can be read only once; name one of the files
! gpufilter: hist: standard input can be read only once; name one of the files
[2]
$ gpufilter smooth ok.png -O ok.png/x; gpufilter smooth ok.png -O /dev/null; gpufilter smooth ok.png -O /proc/x/y; gpufilter smooth ok.png -O x --backend cpu --device 0; ls -A x
! gpufilter: ok.png/x: cannot create the directory: Not a directory
! gpufilter: /dev/null: cannot create the directory: Not a directory
! gpufilter: /proc/x/y: cannot create the directory: this file system holds no new ones; use another --out-dir
! gpufilter: --device: not supported by the cpu backend; use --backend cuda
! ls: cannot access 'x': No such file or directory
[2]
$ gpufilter smooth ok.png -O ''; gpufilter hist ok.png --null; gpufilter hist ok.png --keep-going --fail-fast
! gpufilter: --out-dir '': must not be empty; . is the current directory
! gpufilter: --null: requires --files-from
! gpufilter: --fail-fast: cannot be combined with --keep-going
[2]
# A batch that cannot start removes the directories that it created, but no others.
$ mkdir -p y/z; gpufilter smooth -R t -O y/z/x/w --backend cpu --device 0; gpufilter smooth ok.png -O y/u/v --backend cpu --device 0; gpufilter smooth none ok.png -O y/v --fail-fast; find y | sort
> y
> y/z
! gpufilter: --device: not supported by the cpu backend; use --backend cuda
! gpufilter: --device: not supported by the cpu backend; use --backend cuda
! gpufilter: none: is a directory; use --recursive to process its images
# A message is one line with the reason, for any length of the path.
$ deep=$(printf 'deep%.0s/' {1..300}); gpufilter smooth ok.png -O $deep -q; gpufilter smooth ok.png -O $deep 2>&1 | head -n 1 | sed 's/deep.*deep/DEEP/'
> gpufilter: DEEP/ok.png: already exists (1 of 1 existing outputs); use --force to replace them, or --resume to skip finished outputs
# Measuring filters print their results in the order of the inputs.
$ gpufilter hist samples/gradient16.png samples/page.png -n 2 --no-progress 2>/dev/null | grep by
> samples/gradient16.png: 640x480 grey u16, by cpu
> samples/page.png: 850x1100 grey u8, by cpu
$ gpufilter axis-sum ok.png absent.png samples/gradient16.png --csv --axis y 2>/dev/null | awk 'NR % 300 == 1'
> file,x,grey
> ok.png,299,242778
> ok.png,599,248385
> samples/gradient16.png,49,15440829
> samples/gradient16.png,349,18667718
$ gpufilter hist -n 2 ok.png 'a b.png' samples/scene.png --csv -q
> file,bin,from,to,grey
> ok.png,0,0,127,44398
> ok.png,1,128,255,890602
> a b.png,0,0,127,44398
> a b.png,1,128,255,890602
! gpufilter: samples/scene.png: its columns differ from those of the first file, and a CSV table has one header; run it separately, or use --json
[1]
$ gpufilter hist -n 2 --json - ok.png in/bad.png <samples/page.png 2>/dev/null | grep -o '"files.*"image\|"grey": .*'
> "files": ["-"], "image
> "grey": [44398, 890602]}, "totals": {"channel": ["grey"], "samples": [935000], "nan": [0]}}}
> "files": ["ok.png"], "image
> "grey": [44398, 890602]}, "totals": {"channel": ["grey"], "samples": [935000], "nan": [0]}}}
$ gpufilter hist -n 2 ok.png ok.png >/dev/full
! gpufilter: standard output: cannot write: No space left on device
[1]
# Lists of Windows: a byte order mark, carriage returns. A file whose name ends in a carriage return is still found.
$ cp samples/page.png $'cr.png\r'; printf '\357\273\277samples/page.png\r\n\r\ncr.png\r\nsamples/card.png\r\n' >windows.txt; gpufilter hist --json --files-from windows.txt 2>/dev/null | grep -o '"files": [^]]*]'
> "files": ["samples/page.png"]
> "files": ["cr.png\u000d"]
> "files": ["samples/card.png"]
$ for text in '\357\273\277' '\357\273\277\r\n\r\n' '\r\n'; do printf "$text" >windows.txt; gpufilter hist --files-from windows.txt; done
! gpufilter: --files-from 'windows.txt': no images found
! gpufilter: --files-from 'windows.txt': no images found
! gpufilter: --files-from 'windows.txt': no images found
[1]
# Links to directories are not followed; they are counted.
$ mkdir links; cp samples/page.png links; ln -s ../samples links/more; ln -s more links/more2; ln -s ../samples/draw.c links/c; gpufilter smooth -k -R links -O linked 2>&1 | sed 's/in .*/in #/'; ls linked
> 1 done, 0 failed, 3 skipped in #
>   1 file skipped: unsupported format; 2 links to directories skipped
> page.png
$ rm links/page.png; gpufilter hist -R links
! gpufilter: links: no images found; 1 file skipped: unsupported format; 2 links to directories skipped
[1]
