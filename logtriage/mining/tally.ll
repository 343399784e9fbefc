; The lines of a block told apart by their blurs; tally.py says what it is for and makes machine code of it.
; It returns the number of lines and leaves that of kinds in %told; -1 stands for what had too little room.
; %slots is a table of open addresses, %mask its size less one, -1 throughout; the other arrays are as `Tally`
; has them. %by_slice is a table with a row of %slices counts for each of %rows kinds, and one for all others:
; the lines of a kind that begin in each slice, of 2 to the %shift bytes, of the file, at whose byte %offset the
; block begins.
;
; Of 32 bytes at a time all are looked at at once. Those of a line are hashed in two rows of pairs of words,
; each pair multiplied to 128 bits that are folded (the step of W. Yi's wyhash); the rows do not wait for each
; other.

declare i32 @llvm.cttz.i32(i32, i1)
declare i64 @llvm.umin.i64(i64, i64)

define internal <32 x i8> @all(i8 %value) {
  %one = insertelement <32 x i8> undef, i8 %value, i32 0
  %all = shufflevector <32 x i8> %one, <32 x i8> undef, <32 x i32> zeroinitializer
  ret <32 x i8> %all
}

define i64 @told_apart(ptr %data, i64 %size, i64 %seed, ptr %starts, ptr %codes, i64 %most_lines,
                       ptr %first, ptr %last, ptr %counts, ptr %hashes, i64 %most_kinds,
                       ptr %slots, i64 %mask, i64 %offset, i64 %shift, ptr %by_slice, i64 %rows, i64 %slices,
                       ptr %told) {
begin:
  %slice.before = lshr i64 %offset, %shift
  %padded = alloca <32 x i8>, align 32
  store i64 0, ptr %starts
  %all.0 = call <32 x i8> @all(i8 48)             ; "0"
  %all.10 = call <32 x i8> @all(i8 10)            ; how many digits there are, and a line end
  %all.32 = call <32 x i8> @all(i8 32)            ; what small letters have and large ones have not
  %all.a = call <32 x i8> @all(i8 97)             ; "a"
  %all.6 = call <32 x i8> @all(i8 6)              ; the letters up to "f"
  ; A secret for each row, by digits of the golden ratio and of the root of 2.
  %secret.left = xor i64 %seed, u0x9E3779B97F4A7C15
  %turned = mul i64 %secret.left, u0xB504F333F9DE6485
  %secret.right = xor i64 %turned, u0x9E3779B97F4A7C15
  br label %line

line:                                             ; a line each time
  %start = phi i64 [0, %begin], [%next, %counted]
  %line.number = phi i64 [0, %begin], [%lines, %counted]
  %known = phi i64 [0, %begin], [%kinds, %counted]
  %is.over = icmp uge i64 %start, %size
  br i1 %is.over, label %over, label %room

room:
  %has.room = icmp ult i64 %line.number, %most_lines
  br i1 %has.room, label %block, label %no.room.for.lines

block:                                            ; 32 bytes of it each time
  %at = phi i64 [%start, %room], [%behind, %within]
  %row.left = phi i64 [%secret.left, %room], [%left.within, %within]
  %row.right = phi i64 [%secret.right, %room], [%right.within, %within]
  %behind = add i64 %at, 32
  %is.whole = icmp ule i64 %behind, %size
  %place.there = getelementptr i8, ptr %data, i64 %at
  br i1 %is.whole, label %read, label %fewer

fewer:                                            ; behind the data there are line ends
  store <32 x i8> %all.10, ptr %padded
  %some = sub i64 %size, %at
  %has.some = icmp ne i64 %some, 0
  br i1 %has.some, label %copy, label %read

copy:
  %copied = phi i64 [0, %fewer], [%copied.more, %copy]
  %from = getelementptr i8, ptr %place.there, i64 %copied
  %to = getelementptr i8, ptr %padded, i64 %copied
  %copied.byte = load i8, ptr %from
  store i8 %copied.byte, ptr %to
  %copied.more = add i64 %copied, 1
  %is.copied = icmp eq i64 %copied.more, %some
  br i1 %is.copied, label %read, label %copy

read:
  %place = phi ptr [%place.there, %block], [%padded, %fewer], [%padded, %copy]
  %bytes = load <32 x i8>, ptr %place, align 1
  %above.0 = sub <32 x i8> %bytes, %all.0
  %digits = icmp ult <32 x i8> %above.0, %all.10
  %small = or <32 x i8> %bytes, %all.32
  %above.a = sub <32 x i8> %small, %all.a
  %letters = icmp ult <32 x i8> %above.a, %all.6
  %varies = or <32 x i1> %digits, %letters
  %blurred = select <32 x i1> %varies, <32 x i8> %all.0, <32 x i8> %bytes
  %is.end = icmp eq <32 x i8> %bytes, %all.10
  %ends = bitcast <32 x i1> %is.end to i32
  %has.end = icmp ne i32 %ends, 0
  br i1 %has.end, label %end, label %within

within:
  %words.within = bitcast <32 x i8> %blurred to <4 x i64>
  %word.within.0 = extractelement <4 x i64> %words.within, i32 0
  %word.within.1 = extractelement <4 x i64> %words.within, i32 1
  %word.within.2 = extractelement <4 x i64> %words.within, i32 2
  %word.within.3 = extractelement <4 x i64> %words.within, i32 3
  %with.within.0 = xor i64 %word.within.0, %secret.right
  %with.within.1 = xor i64 %word.within.1, %row.left
  %with.within.2 = xor i64 %word.within.2, %secret.left
  %with.within.3 = xor i64 %word.within.3, %row.right
  %left.within.one = zext i64 %with.within.0 to i128
  %left.within.other = zext i64 %with.within.1 to i128
  %left.within.product = mul i128 %left.within.one, %left.within.other
  %left.within.upper.wide = lshr i128 %left.within.product, 64
  %left.within.upper = trunc i128 %left.within.upper.wide to i64
  %left.within.lower = trunc i128 %left.within.product to i64
  %left.within = xor i64 %left.within.upper, %left.within.lower
  %right.within.one = zext i64 %with.within.2 to i128
  %right.within.other = zext i64 %with.within.3 to i128
  %right.within.product = mul i128 %right.within.one, %right.within.other
  %right.within.upper.wide = lshr i128 %right.within.product, 64
  %right.within.upper = trunc i128 %right.within.upper.wide to i64
  %right.within.lower = trunc i128 %right.within.product to i64
  %right.within = xor i64 %right.within.upper, %right.within.lower
  br label %block

end:
  %length.short = call i32 @llvm.cttz.i32(i32 %ends, i1 true)
  %length.byte = trunc i32 %length.short to i8
  %length.one = insertelement <32 x i8> undef, i8 %length.byte, i32 0
  %length.all = shufflevector <32 x i8> %length.one, <32 x i8> undef, <32 x i32> zeroinitializer
  %is.inside = icmp ult <32 x i8> <i8 0, i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7, i8 8, i8 9, i8 10, i8 11,
    i8 12, i8 13, i8 14, i8 15, i8 16, i8 17, i8 18, i8 19, i8 20, i8 21, i8 22, i8 23, i8 24, 
    i8 25, i8 26, i8 27, i8 28, i8 29, i8 30, i8 31>, %length.all
  %inside = select <32 x i1> %is.inside, <32 x i8> %blurred, <32 x i8> zeroinitializer
  %words = bitcast <32 x i8> %inside to <4 x i64>
  %word.0 = extractelement <4 x i64> %words, i32 0
  %word.1 = extractelement <4 x i64> %words, i32 1
  %word.2 = extractelement <4 x i64> %words, i32 2
  %word.3 = extractelement <4 x i64> %words, i32 3
  %with.0 = xor i64 %word.0, %secret.right
  %with.1 = xor i64 %word.1, %row.left
  %with.2 = xor i64 %word.2, %secret.left
  %with.3 = xor i64 %word.3, %row.right
  %left.one = zext i64 %with.0 to i128
  %left.other = zext i64 %with.1 to i128
  %left.product = mul i128 %left.one, %left.other
  %left.upper.wide = lshr i128 %left.product, 64
  %left.upper = trunc i128 %left.upper.wide to i64
  %left.lower = trunc i128 %left.product to i64
  %left = xor i64 %left.upper, %left.lower
  %right.one = zext i64 %with.2 to i128
  %right.other = zext i64 %with.3 to i128
  %right.product = mul i128 %right.one, %right.other
  %right.upper.wide = lshr i128 %right.product, 64
  %right.upper = trunc i128 %right.upper.wide to i64
  %right.lower = trunc i128 %right.product to i64
  %right = xor i64 %right.upper, %right.lower
  %length.here = zext i32 %length.short to i64
  %stop = add i64 %at, %length.here
  %length = sub i64 %stop, %start
  %left.secret = xor i64 %left, %secret.right
  %right.length = xor i64 %right, %length
  %right.secret = xor i64 %right.length, %secret.left
  %hash.line.one = zext i64 %left.secret to i128
  %hash.line.other = zext i64 %right.secret to i128
  %hash.line.product = mul i128 %hash.line.one, %hash.line.other
  %hash.line.upper.wide = lshr i128 %hash.line.product, 64
  %hash.line.upper = trunc i128 %hash.line.upper.wide to i64
  %hash.line.lower = trunc i128 %hash.line.product to i64
  %hash.line = xor i64 %hash.line.upper, %hash.line.lower
  %next = add i64 %stop, 1
  %code.place = getelementptr i64, ptr %codes, i64 %line.number
  %slot.first = and i64 %hash.line, %mask
  br label %look

look:
  %slot = phi i64 [%slot.first, %end], [%slot.next, %taken]
  %slot.place = getelementptr i32, ptr %slots, i64 %slot
  %slot.kind = load i32, ptr %slot.place
  %kind = sext i32 %slot.kind to i64
  %is.free = icmp slt i32 %slot.kind, 0
  br i1 %is.free, label %new, label %compare

compare:
  %hash.place = getelementptr i64, ptr %hashes, i64 %kind
  %hash.there = load i64, ptr %hash.place
  %is.same = icmp eq i64 %hash.there, %hash.line
  br i1 %is.same, label %again, label %taken

taken:
  %slot.behind = add i64 %slot, 1
  %slot.next = and i64 %slot.behind, %mask
  br label %look

again:
  %last.place = getelementptr i64, ptr %last, i64 %kind
  store i64 %line.number, ptr %last.place
  %count.place = getelementptr i64, ptr %counts, i64 %kind
  %count = load i64, ptr %count.place
  %count.more = add i64 %count, 1
  store i64 %count.more, ptr %count.place
  %first.place = getelementptr i64, ptr %first, i64 %kind
  %code = load i64, ptr %first.place
  store i64 %code, ptr %code.place
  br label %counted

new:
  %has.room.left = icmp ult i64 %known, %most_kinds
  br i1 %has.room.left, label %added, label %no.room.for.kinds

added:
  %slot.filled = trunc i64 %known to i32
  store i32 %slot.filled, ptr %slot.place
  %new.hash.place = getelementptr i64, ptr %hashes, i64 %known
  store i64 %hash.line, ptr %new.hash.place
  %new.first.place = getelementptr i64, ptr %first, i64 %known
  store i64 %line.number, ptr %new.first.place
  %new.last.place = getelementptr i64, ptr %last, i64 %known
  store i64 %line.number, ptr %new.last.place
  %new.count.place = getelementptr i64, ptr %counts, i64 %known
  store i64 1, ptr %new.count.place
  store i64 %line.number, ptr %code.place
  %known.more = add i64 %known, 1
  br label %counted

counted:
  %kinds = phi i64 [%known, %again], [%known.more, %added]
  %whose = phi i64 [%kind, %again], [%known, %added]
  %row = call i64 @llvm.umin.i64(i64 %whose, i64 %rows)
  %row.begin = mul i64 %row, %slices
  %start.in.file = add i64 %start, %offset
  %slice.in.file = lshr i64 %start.in.file, %shift
  %slice = sub i64 %slice.in.file, %slice.before
  %cell = add i64 %row.begin, %slice
  %cell.place = getelementptr i32, ptr %by_slice, i64 %cell
  %in.slice = load i32, ptr %cell.place
  %in.slice.more = add i32 %in.slice, 1
  store i32 %in.slice.more, ptr %cell.place
  %lines = add i64 %line.number, 1
  %start.place = getelementptr i64, ptr %starts, i64 %lines
  store i64 %next, ptr %start.place
  br label %line

over:
  store i64 %known, ptr %told
  ret i64 %line.number

no.room.for.lines:
  store i64 %known, ptr %told
  ret i64 -1

no.room.for.kinds:
  store i64 -1, ptr %told
  ret i64 %line.number
}
