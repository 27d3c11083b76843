# Every third of five images; {index} counts all of them.
$ for name in a b c d e; do cp samples/page.png $name.png; done; gpufilter smooth ?.png -O out --shard 2/3 --name '{index}-{stem}{ext}' 2>&1 | sed 's/in .*/in #/'; ls -A out
> 2 done, 0 failed, 0 skipped in #
>   brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
> 2-b.png
> 5-e.png
$ gpufilter smooth ?.png -O out --shard=1/3 --name '{index}-{stem}{ext}' -q; gpufilter smooth ?.png -O out --shard 3/3 --name '{index}-{stem}{ext}' -q; ls -A out; gpufilter smooth a.png - | cmp - out/5-e.png
> 1-a.png
> 2-b.png
> 3-c.png
> 4-d.png
> 5-e.png
! gpufilter: a.png: brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
$ gpufilter smooth ?.png -O out --name '{index}-{stem}{ext}' --resume 2>&1 | sed 's/in .*/in #/'; gpufilter smooth ?.png -O out --name '{index}-{stem}{ext}' --resume --shard 1/2 2>&1 | sed 's/in .*/in #/'
> 0 done, 0 failed, 5 skipped in #
> 0 done, 0 failed, 3 skipped in #
# A shard without inputs succeeds.
$ gpufilter smooth ?.png -O few --shard 6/1000000 2>&1 | sed 's/in .*/in #/'; gpufilter hist ?.png --shard 7/7 --csv -q
> 0 done, 0 failed, 0 skipped in #
# Every shard checks the names of all outputs.
$ mkdir in; cp a.png in; gpufilter smooth a.png b.png in/a.png -O x --shard 2/3; ls x
! gpufilter: x/a.png: is the output of both a.png and in/a.png; use a --name with {index}, such as '{index}-{stem}{ext}'
! ls: cannot access 'x': No such file or directory
[2]
# Every shard reports problems with the list of inputs; directories, and lists on standard input.
$ gpufilter smooth a.png in b.png absent.png -O x --shard 2/2 2>&1 | sed 's/skipped in .*/skipped in #/'; ls x
> gpufilter: in: is a directory; use --recursive to process its images
> 1 done, 1 failed, 0 skipped in #
>   brightness x1.452, 93.2 % of samples clipped; --keep-brightness avoids it
> b.png
$ gpufilter smooth -R in a.png -O y --shard 1/2 -q; ls *.png | gpufilter smooth --files-from - -O y --shard 4/4 -q; ls y
> d.png
! gpufilter: y/a.png: is the output of both in/a.png and a.png; use a --name with {index}, such as '{index}-{stem}{ext}'
# Measuring filters: in the order of the shard's inputs.
$ gpufilter hist -n 2 -R --shard 2/3 samples/page.png e.png d.png c.png b.png --csv -q
> file,bin,from,to,grey
> e.png,0,0,127,44398
> e.png,1,128,255,890602
> b.png,0,0,127,44398
> b.png,1,128,255,890602
$ gpufilter axis-sum a.png --shard 1/1 --json -q | grep -o '"files.*"image'
> "files": ["a.png"], "image
$ gpufilter hist -n 2 --shard 1/2 - absent.png --json <a.png 2>/dev/null | grep -o '"grey": .*'
> "grey": [44398, 890602]}, "totals": {"channel": ["grey"], "samples": [935000], "nan": [0]}}}
# Usage.
$ for shard in 0/3 4/3 x 3 1/0 0/0 1/1000001 99999999999999999999/99999999999999999999 4294967297/4294967298 -1/3 +1/3 ' 1/3' '1/3 ' 1/3/3 1//3 / 1/ /3 '' 1.5/3 1e0/3; do gpufilter smooth a.png -O x --shard "$shard" || echo $?; done
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
> 2
! gpufilter: --shard '0/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '4/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard 'x': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1/0': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '0/0': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1/1000001': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '99999999999999999999/99999999999999999999': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '4294967297/4294967298': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '-1/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '+1/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard ' 1/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1/3 ': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1/3/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1//3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '/': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1/': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1.5/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard '1e0/3': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
$ gpufilter hist a.png --shard 2/1; gpufilter smooth a.png out.png --shard 1/1; gpufilter smooth a.png -O x --shard; gpufilter compare a.png b.png --shard 1/1; ls out.png
! gpufilter: --shard '2/1': must be K/N with 1 <= K <= N <= 1000000, such as 1/4 for the first of four shards
! gpufilter: --shard: requires --out-dir
! gpufilter: --shard: requires a value (K/N)
! gpufilter: --shard: unknown option of compare (it is an option of smooth); see 'gpufilter compare --help'
! ls: cannot access 'out.png': No such file or directory
[2]
$ gpufilter hist a.png --shard 1/1 --plot p.png; gpufilter hist --shard 1/1
! gpufilter: --plot: not supported for several inputs; run the filter once per input
! gpufilter: hist: expected input files; see 'gpufilter hist --help'
[2]
# A failed shard keeps the directories that it created, because other shards use them.
$ gpufilter smooth a.png -O new/directory --shard 1/2 --backend cpu --device 0; ls -d new/directory
> new/directory
! gpufilter: --device: not supported by the cpu backend; use --backend cuda
