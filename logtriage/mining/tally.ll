; The lines of a block told apart by their blurs; tally.py says what it is for and makes machine code of it.
; It returns the number of lines and leaves that of kinds in %told; -1 stands for what had too little room.
; %slots is a table of open addresses, %mask its size less one, -1 throughout; the other arrays are as `Tally`
; has them. %size is at least 8.
;
; Eight bytes at a time are one number, whose bytes are compared all at once without carrying into each
; other: for bytes b < 128, the highest bit of b + (128 - x) tells b >= x (the method of H. S. Warren,
; Hacker's Delight, section 6-1).

declare i64 @llvm.cttz.i64(i64, i1)

define i64 @told_apart(ptr %data, i64 %size, i64 %seed, ptr %starts, ptr %codes, i64 %most_lines,
                       ptr %first, ptr %last, ptr %counts, ptr %hashes, i64 %most_kinds,
                       ptr %slots, i64 %mask, ptr %told) {
begin:
  store i64 0, ptr %starts
  %end.less.8 = sub i64 %size, 8
  %ending = getelementptr i8, ptr %data, i64 %end.less.8
  br label %line

line:                                             ; a line each time
  %start = phi i64 [0, %begin], [%next, %counted]
  %line.number = phi i64 [0, %begin], [%lines, %counted]
  %known = phi i64 [0, %begin], [%kinds, %counted]
  %is.over = icmp uge i64 %start, %size
  br i1 %is.over, label %over, label %room

room:
  %has.room = icmp ult i64 %line.number, %most_lines
  br i1 %has.room, label %word, label %no.room.for.lines

word:                                             ; eight bytes of it each time
  %at = phi i64 [%start, %room], [%behind, %within]
  %hash = phi i64 [%seed, %room], [%hash.within, %within]
  %behind = add i64 %at, 8
  %is.whole = icmp ule i64 %behind, %size
  br i1 %is.whole, label %eight, label %fewer

eight:
  %place = getelementptr i8, ptr %data, i64 %at
  %bytes.eight = load i64, ptr %place, align 1
  br label %read

fewer:                                            ; behind the data there are line ends
  %left = sub i64 %size, %at
  %left.bits = shl i64 %left, 3
  %gone.bits = sub i64 64, %left.bits
  %last.eight = load i64, ptr %ending, align 1
  %last.some = lshr i64 %last.eight, %gone.bits
  %has.some = icmp ne i64 %left, 0                ; shifting by all 64 bits has no result
  %last.few = select i1 %has.some, i64 %last.some, i64 0
  %padding = shl i64 u0x0A0A0A0A0A0A0A0A, %left.bits
  %bytes.fewer = or i64 %last.few, %padding
  br label %read

read:
  %bytes = phi i64 [%bytes.eight, %eight], [%bytes.fewer, %fewer]
  %low = and i64 %bytes, u0x7F7F7F7F7F7F7F7F
  %lower = or i64 %low, u0x2020202020202020
  %from.0 = add i64 %low, u0x5050505050505050     ; 128 - "0"
  %behind.9 = add i64 %low, u0x4646464646464646   ; 128 - "9" - 1
  %not.behind.9 = xor i64 %behind.9, -1
  %digits = and i64 %from.0, %not.behind.9
  %from.a = add i64 %lower, u0x1F1F1F1F1F1F1F1F   ; 128 - "a"
  %behind.f = add i64 %lower, u0x1919191919191919 ; 128 - "f" - 1
  %not.behind.f = xor i64 %behind.f, -1
  %letters = and i64 %from.a, %not.behind.f
  %either = or i64 %digits, %letters
  %not.bytes = xor i64 %bytes, -1
  %either.ascii = and i64 %either, %not.bytes
  %highest = and i64 %either.ascii, u0x8080808080808080
  %lowest = lshr i64 %highest, 7
  %varies = mul i64 %lowest, 255                  ; each byte that varies: all ones
  %stays = xor i64 %varies, -1
  %kept = and i64 %bytes, %stays
  %zeros = and i64 u0x3030303030303030, %varies
  %blurred = or i64 %kept, %zeros
  %other = xor i64 %bytes, u0x0A0A0A0A0A0A0A0A
  %other.low = and i64 %other, u0x7F7F7F7F7F7F7F7F
  %other.sum = add i64 %other.low, u0x7F7F7F7F7F7F7F7F
  %other.any = or i64 %other.sum, %other
  %other.all = or i64 %other.any, u0x7F7F7F7F7F7F7F7F
  %ends = xor i64 %other.all, -1                  ; each line end: its highest bit
  %has.end = icmp ne i64 %ends, 0
  br i1 %has.end, label %end, label %within

within:
  %with = xor i64 %hash, %blurred
  %with.mixed = mul i64 %with, u0x9E3779B97F4A7C15 ; 2^64 divided by the golden ratio
  %with.high = lshr i64 %with.mixed, 32
  %hash.within = xor i64 %with.mixed, %with.high
  br label %word

end:
  %bits = call i64 @llvm.cttz.i64(i64 %ends, i1 true)
  %length.here = lshr i64 %bits, 3
  %shift = sub i64 %bits, 7
  %one = shl i64 1, %shift
  %before = sub i64 %one, 1
  %tail = and i64 %blurred, %before
  %tail.with = xor i64 %hash, %tail
  %tail.mixed = mul i64 %tail.with, u0x9E3779B97F4A7C15
  %tail.high = lshr i64 %tail.mixed, 32
  %tail.hash = xor i64 %tail.mixed, %tail.high
  %stop = add i64 %at, %length.here
  %length = sub i64 %stop, %start
  %length.with = xor i64 %tail.hash, %length
  %length.mixed = mul i64 %length.with, u0x9E3779B97F4A7C15
  %length.high = lshr i64 %length.mixed, 29
  %hash.line = xor i64 %length.mixed, %length.high
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
