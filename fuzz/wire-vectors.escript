#!/usr/bin/env escript
-mode(compile).
%% Terms as Erlang itself writes them, for tests that need no Erlang.
%% usage: wire-vectors.escript tests/unit/term_vectors.h fuzz/corpus/wire
%%
%% A vector says whether encoding the decoded term must give the same bytes back: not
%% where Erlang has an older form that decodes to the same value.

main([Header, Corpus]) ->
    Vectors = exact() ++ older(),
    {ok, Out} = file:open(Header, [write]),
    io:format(Out, "/* Terms written by Erlang/OTP ~s (fuzz/wire-vectors.escript makes this file). */~n"
              "#pragma once~n~n#include <stdbool.h>~n#include <stddef.h>~n#include <stdint.h>~n~n"
              "static const struct term_vector {~n\tconst char *name;~n\tconst char *bytes;~n"
              "\tsize_t size;~n\tbool is_exact;~n\tconst char *print;~n} term_vectors[] = {~n",
              [erlang:system_info(otp_release)]),
    [begin
         io:format(Out, "\t{ \"~s\",~n~s, ~b, ~s,~n\t  ~s },~n",
                   [Name, hex(Bytes), byte_size(Bytes), Exact, text(Print)]),
         %% A frame for the fuzzer: its first byte picks the side.
         ok = file:write_file(filename:join(Corpus, Name), <<0, Bytes/binary>>)
     end || {Name, Bytes, Exact, Print} <- Vectors],
    io:format(Out, "};~n", []),
    file:close(Out).

text(none) -> "NULL";
text(Text) -> io_lib:format("\"~s\"", [lists:flatmap(fun escape/1, Text)]).

escape($\\) -> "\\\\";
escape($") -> "\\\"";
escape(C) -> [C].

hex(Bytes) -> lists:join("\n", [["\t  \"", [io_lib:format("\\x~2.16.0b", [B]) || B <- Row], "\""]
                                || Row <- rows(binary_to_list(Bytes))]).

rows(L) when length(L) =< 20 -> [L];
rows(L) -> {A, B} = lists:split(20, L), [A | rows(B)].

v(Name, Term) -> v(Name, Term, none).
v(Name, Term, Print) -> {Name, term_to_binary(Term, [{minor_version, 2}]), true, Print}.

exact() ->
    Numbers = [0, 1, 255, 256, -1, 2147483647, 2147483648, -2147483648, -2147483649,
               9223372036854775807, -9223372036854775808],
    [v("int_" ++ integer_to_list(I), I, integer_to_list(I)) || I <- Numbers] ++
    [v("big_min", 9223372036854775808, "16#8000000000000000"),
     v("big_negative", -9223372036854775809, "-16#8000000000000001"),
     v("big_255", 1 bsl (255 * 8 - 1)),
     v("big_large", 1 bsl (256 * 8)),
     v("float_zero", 0.0, "0.0"),
     v("float_minus_zero", -0.0, "-0.0"),
     v("float_tenth", 0.1, "0.1"),
     v("float_large", 1.0e300, "1.0e+300"),
     v("float_small", 5.0e-324),
     v("atom", ok, "ok"),
     v("atom_empty", '', "''"),
     v("atom_blank", 'a b\'c', "'a b\\'c'"),
     v("atom_latin1", 'h\x{e9}', "'h\\x{e9}'"),
     v("atom_utf8", '\x{3b1}\x{1f600}', "'\\x{3b1}\\x{1f600}'"),
     v("atom_255", list_to_atom(lists:duplicate(255, $a))),
     v("atom_255_wide", list_to_atom(lists:duplicate(255, 16#1f600))),
     v("binary_empty", <<>>, "<<>>"),
     v("binary_text", <<"hi \"there\"">>, "<<\"hi \\\"there\\\"\">>"),
     v("binary_bytes", <<0, 27, 255>>, "<<0,27,255>>"),
     v("bits_3", <<5:3>>, "<<5:3>>"),
     v("bits_19", <<1, 2, 5:3>>, "<<1,2,5:3>>"),
     v("tuple_empty", {}, "{}"),
     v("tuple", {a, 1, <<"b">>}, "{a,1,<<\"b\">>}"),
     v("tuple_255", list_to_tuple(lists:duplicate(255, x))),
     v("tuple_256", list_to_tuple(lists:duplicate(256, x))),
     v("nil", [], "[]"),
     v("string", "abc", "[97,98,99]"),
     v("list_mixed", [1, 256, a], "[1,256,a]"),
     v("list_nested", [[], [[]], [a, [b]]], "[[],[[]],[a,[b]]]"),
     v("improper", [1, 2 | c], "[1,2|c]"),
     v("improper_pair", [a | b], "[a|b]"),
     v("map_empty", #{}, "#{}"),
     v("map", #{1 => <<"x">>}, "#{1=><<\"x\">>}"),
     v("map_40", maps:from_list([{I, I * I} || I <- lists:seq(1, 40)])),
     v("map_of_maps", #{#{a => 1} => #{b => 2}, #{a => 2} => [#{}]}),
     v("map_int_float", #{1 => a, 1.0 => b}),
     v("pid", self(), "<opaque>"),
     v("port", hd(erlang:ports()), "<opaque>"),
     v("ref", make_ref(), "<opaque>"),
     v("call", {call, 7, exec, #{argv => [<<"/bin/echo">>, <<"hi">>], timeout_ms => 1000}}),
     v("reply", {reply, 7, #{exit_code => 0, signal => null}}),
     v("deep", lists:foldl(fun(_, T) -> {T} end, x, lists:seq(1, 60)))].

older() ->
    Old = fun(T, V) -> term_to_binary(T, [{minor_version, V}]) end,
    Node = <<119, 3, "a@b">>,
    [{"old_float", Old(0.1, 0), false, "0.1"},
     {"old_float_negative", Old(-1.5e-200, 0), false, "-1.5e-200"},
     {"old_atom", Old(ok, 1), false, "ok"},
     {"old_atom_latin1", Old('h\x{e9}', 1), false, "'h\\x{e9}'"},
     {"small_atom", <<131, 115, 2, "ok">>, false, "ok"},
     {"small_int_wide", <<131, 98, 0, 0, 0, 5>>, false, "5"},
     {"big_zeros", <<131, 110, 12, 0, 5, 0:88>>, false, "5"},
     {"big_minus_zero", <<131, 110, 1, 1, 0>>, false, "0"},
     {"big_large_small", <<131, 111, 2:32, 1, 1, 1>>, false, "-257"},
     {"bits_whole", <<131, 77, 1:32, 8, "a">>, false, "<<\"a\">>"},
     {"bits_dirty", <<131, 77, 1:32, 3, 255>>, false, "<<7:3>>"},
     {"string_empty", <<131, 107, 0, 0>>, false, "[]"},
     {"list_of_nothing", <<131, 108, 0:32, 106>>, false, "[]"},
     {"list_of_bytes", <<131, 108, 1:32, 97, 1, 106>>, false, "[1]"},
     {"tuple_wide", <<131, 105, 1:32, 97, 1>>, false, "{1}"},
     {"pid_old", <<131, 103, Node/binary, 1:32, 2:32, 3>>, true, "<opaque>"},
     {"port_old", <<131, 102, Node/binary, 1:32, 3>>, true, "<opaque>"},
     {"port_new", <<131, 89, Node/binary, 1:32, 3:32>>, true, "<opaque>"},
     {"port_v4", <<131, 120, Node/binary, 1:64, 3:32>>, true, "<opaque>"},
     {"ref_old", <<131, 101, Node/binary, 1:32, 3>>, true, "<opaque>"},
     {"ref_new", <<131, 114, 3:16, Node/binary, 3, 1:96>>, true, "<opaque>"},
     {"ref_newer", <<131, 90, 5:16, Node/binary, 3:32, 1:160>>, true, "<opaque>"}].
