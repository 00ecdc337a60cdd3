Code.require_file("parent.exs", __DIR__)
ExUnit.start(timeout: 240_000, slowest: 6, colors: [enabled: false])

defmodule EvaluatorTest do
  # Sentences in quotation marks are the contract's, held here word for word.
  use ExUnit.Case, async: false

  defp eval(parent, code, opts \\ []), do: Parent.eval(parent, code, opts)
  defp value(parent, code, opts \\ []), do: Map.fetch!(eval(parent, code, opts), :value)
  defp error(parent, code, opts \\ []), do: Map.fetch!(eval(parent, code, opts), :error)

  # The last word of each test that tries to end a session.
  defp alive(parent), do: assert(value(parent, "1 + 1") == 2)

  # "Parent and child communicate over an Erlang port using length-prefixed Erlang external terms."
  test "frames, and a Ref that goes back unread" do
    parent = Parent.start(binding: %{"kept" => [1, 2], "text" => "ä"})

    assert %{value: 3, terminated: false, output: "", binding: %{"kept" => [1, 2]}} =
             eval(parent, "Enum.sum(kept)")

    for ref <- [0, make_ref(), self(), {:a, "b", [1.5, 2 ** 90, -1]}, %{never_seen_before: nil}, "x", [1 | 2]],
        do: assert(value(parent, "text", ref: ref) == "ä")
  end

  # "the entity still writes Elixir with persistent bindings"
  test "bindings persist, those of finished statements when a later one fails too" do
    parent = Parent.start()

    assert %{value: 10, output: "hi\n", binding: %{"x" => 5}} =
             eval(parent, "x = 5; y = x * 2; IO.puts(\"hi\"); y")

    assert %{error: error, binding: %{"a" => 1} = binding} = eval(parent, "a = 1\nb = 1 / 0\nc = 2")
    assert error =~ "ArithmeticError" and error =~ "(line 2)"
    refute Map.has_key?(binding, "c")
    assert value(parent, "binding()") == [a: 1, x: 5, y: 10]
    assert value(parent, "a + x") == 6

    # A function is not kept, and a value with one in it neither.
    assert %{value: "#Function<" <> _, binding: binding} = eval(parent, "f = fn n -> n end")
    refute Map.has_key?(binding, "f")

    assert error(parent, "f.(1)") ==
             "undefined variable f: it was a function or another handle, which is not kept"

    assert %{binding: %{"d" => %{"year" => 2024}}} = eval(parent, "d = ~D[2024-01-02]; s = [fn -> 1 end]; 1")
    assert value(parent, "d.year") == 2024
    assert error(parent, "s") =~ "undefined variable s"

    assert %{value: %{"atom_of_this_session" => "another_of_it"}} =
             eval(parent, "%{atom_of_this_session: :another_of_it}")

    assert value(parent, ~s(%{"new_a" => 1} == %{"new_a" => 1})) == true
  end

  @restricted [
    {"File.read(\"x\")", "function File.read/1 is restricted"},
    {"mod = File; mod.read(\"x\")", "function File.read/1 is restricted"},
    {"apply(File, :read, [\"x\"])", "function File.read/1 is restricted"},
    {"Kernel.apply(File, :cwd, [])", "function File.cwd/0 is restricted"},
    {"k = Kernel; k.apply(File, :cwd, [])", "function File.cwd/0 is restricted"},
    {"f = &File.read/1", "function File.read/1 is restricted"},
    {"m = File; &m.read/1", "function File.read/1 is restricted"},
    {"&spawn/1", "function spawn/1 is restricted"},
    {"\"x\" |> File.read()", "function File.read/1 is restricted"},
    {"\"x\" |> File.read", "function File.read/1 is restricted"},
    {"try do File.read(\"x\") rescue _ -> 1 end", "function File.read/1 is restricted"},
    {"Enum.map([\"x\"], &File.read/1)", "function File.read/1 is restricted"},
    {"\"\#{File.cwd!()}\"", "function File.cwd!/0 is restricted"},
    {"~s(\#{File.cwd!()})", "function File.cwd!/0 is restricted"},
    {"%{a: File.cwd!()}", "function File.cwd!/0 is restricted"},
    {"<<System.pid()::binary>>", "function System.pid/0 is restricted"},
    {"for x <- File.ls!(), do: x", "function File.ls!/0 is restricted"},
    {"with {:ok, x} <- File.cwd(), do: x", "function File.cwd/0 is restricted"},
    {"put_in(File.cwd.x, 1)", "function File.cwd/0 is restricted"},
    {"System.cmd(\"id\", [])", "function System.cmd/2 is restricted"},
    {":os.cmd('id')", "function :os.cmd/1 is restricted"},
    {":erlang.halt()", "function :erlang.halt/0 is restricted"},
    {"e = :erlang; e.halt()", "function :erlang.halt/0 is restricted"},
    {"spawn(fn -> 1 end)", "function spawn/1 is restricted"},
    {"k = Kernel; k.spawn(fn -> 1 end)", "function Kernel.spawn/1 is restricted"},
    {"send(1, 2)", "function send/2 is restricted"},
    {"self()", "function self/0 is restricted"},
    {"node()", "function node/0 is restricted"},
    {"exit(:x)", "function exit/1 is restricted"},
    {"Process.list()", "function Process.list/0 is restricted"},
    {"Task.async(fn -> 1 end)", "function Task.async/1 is restricted"},
    {"Node.list()", "function Node.list/0 is restricted"},
    {"Port.list()", "function Port.list/0 is restricted"},
    {":ets.new(:a, [])", "function :ets.new/2 is restricted"},
    {"Code.eval_string(\"1\")", "function Code.eval_string/1 is restricted"},
    {"Code.require_file(\"x\")", "function Code.require_file/1 is restricted"},
    {"Application.get_env(:a, :b)", "function Application.get_env/2 is restricted"},
    {"String.to_atom(\"x\")", "function String.to_atom/1 is restricted"},
    {"List.to_atom('x')", "function List.to_atom/1 is restricted"},
    {"Module.concat([\"A\"])", "function Module.concat/1 is restricted"},
    {"Function.capture(File, :read, 1)", "function Function.capture/3 is restricted"},
    {"URI.default_port(\"a\", 1)", "function URI.default_port/2 is restricted"},
    {"Caisson.Evaluator.Safe.call(File, :cwd, [])", "function Caisson.Evaluator.Safe.call/3 is restricted"},
    {"m = Caisson.Evaluator; m.main()", "function Caisson.Evaluator.main/0 is restricted"},
    {":\"a\#{1}\"", "making atoms from a computed text is restricted"},
    {"~w(a\#{1})a", "making atoms from a computed text is restricted"},
    {"receive do x -> x end", "receive is restricted"},
    {"quote do 1 end", "quote is restricted"},
    {"unquote(1)", "unquote is restricted"},
    {"import Enum", "import is restricted"},
    {"require Logger", "require is restricted"},
    {"alias File, as: F", "alias is restricted"},
    {"use GenServer", "use is restricted"},
    {"defmodule A do end", "defmodule is restricted"},
    {"defimpl Enumerable, for: Map do end", "defimpl is restricted"},
    {"@x 1", "@ is restricted"},
    {"__ENV__", "__ENV__ is restricted"},
    {"__STACKTRACE__", "__STACKTRACE__ is restricted"},
    {"%File.Stat{}", "struct %File.Stat{} is restricted"},
    {"struct(File.Stat)", "struct File.Stat is restricted"},
    {"%{__struct__: File.Stream}", "the key __struct__ is restricted"},
    {"[:__struct__]", "the key __struct__ is restricted"},
    {"raise System", "exception System is restricted"},
    {"Kernel.raise(System)", "exception System is restricted"},
    {"f = & &1.cwd; f.(File)", "function File.cwd/0 is restricted"},
    {"Enum.map([File], & &1.cwd())", "function File.cwd/0 is restricted"},
    {"String.to_existing_atom(\"Elixir.File\").cwd", "function File.cwd/0 is restricted"},
    {"f = &apply/3; f.(File, :cwd, [])", "function File.cwd/0 is restricted"},
    {"Kernel.then(File, & &1.cwd)", "function File.cwd/0 is restricted"},
    {"Kernel.|>(\"x\", File.read())", "function File.read/1 is restricted"},
    {"Kernel.SpecialForms.quote(do: 1)", "function Kernel.SpecialForms.quote/1 is restricted"},
    {":\"Elixir.Kernel\".spawn(fn -> 1 end)", "function Kernel.spawn/1 is restricted"},
    {"case 1 do x when File.cwd() -> x end", "function File.cwd/0 is restricted"},
    {"try do 1 rescue e in File.cwd -> e end", "function File.cwd/0 is restricted"},
    {"sigil_w(\"a b\", 'a')", "a sigil that is written as a call is restricted"},
    {"sigil_w(<<\"a b\">>, [96 + 1])", "a sigil with computed modifiers is restricted"},
    {"for x <- [1], into: File.stream!(\"/tmp/x\"), do: x", "function File.stream!/1 is restricted"},
    {"IO.puts(:user, \"x\")", "the device :user is restricted: print to :stdio"},
    {"IO.inspect(:init, 1, [])", "the device :init is restricted: print to :stdio"},
    {"No.Such.module()", "function No.Such.module/0 is restricted"},
    {"no_such_function(1)", "undefined function no_such_function/1"},
    {"no_such_variable", "undefined variable no_such_variable"}
  ]

  # "Dune denies ambient filesystem, system command, process, spawn, node, and similar capabilities."
  test "what is restricted is refused with a sentence" do
    parent = Parent.start()
    for {code, said} <- @restricted, do: assert({code, eval(parent, code)[:error]} == {code, said})
    alive(parent)
  end

  @same [
    "Enum.map(1..3, &(&1 * 2))",
    "for a <- 1..3, b <- [1, 2], a != b, into: %{}, do: {a, b}",
    "for x <- [1, 2], reduce: 0 do acc -> acc + x end",
    "for <<c <- \"abc\">>, into: \"\", do: <<c + 1>>",
    "with {:ok, a} <- {:ok, 1}, b = a + 1 do b else _ -> 0 end",
    "with {:ok, y} <- :error do y else :error -> \"e\" end",
    "case {1, [2]} do {a, [b | _]} when a < b -> a + b; _ -> 0 end",
    "cond do 1 > 2 -> :a; true -> :b end",
    "try do raise \"a\" rescue e in [RuntimeError] -> e.message end",
    "try do throw(:x) catch :throw, v -> v after 1 end",
    "try do 1 / 0 rescue ArithmeticError -> :zero end",
    "x = 1; ^x = 1; {x, _} = {x + 1, 3}; x",
    "%{a: %{b: c}} = %{a: %{b: 7}}; c",
    "m = %{a: %{b: 1}}; put_in(m.a.b, 2)",
    "m = %{a: [x: 1]}; update_in(m.a[:x], &(&1 + 1))",
    "m = %{a: 1}; %{m | a: 2}",
    "f = fn 0 -> :zero; n when n > 0 -> :more end; {f.(0), f.(2)}",
    "f = fn m when is_map(m) and m.a > 1 -> 1; _ -> 2 end; {f.(%{a: 2}), f.(%{})}",
    "g = &String.upcase/1; Enum.map([\"a\"], g)",
    "Enum.map([1], &max(&1, 2))",
    "s = String; s.upcase(\"a\")",
    "apply(String, :upcase, [\"a\"])",
    "[3, 1, 2] |> Enum.sort(:desc) |> hd()",
    "\"a\" |> then(&(&1 <> \"b\")) |> String.duplicate(2)",
    "<<a::8, n::size(4), rest::bitstring>> = <<1, 0x23, 4>>; {a, n, bit_size(rest)}",
    "n = 16; <<1::size(n)>>",
    "\"x\" <> rest = \"xyz\"; rest",
    "<<len, text::binary-size(len), _::binary>> = <<2, \"abc\">>; text",
    "~r/a(?<n>.)/ |> Regex.named_captures(\"ab\")",
    "~w(a b)a ++ ~w(c)",
    "\"\#{1 + 1} \#{[?a]}\"",
    "inspect(%{a: ~D[2024-01-01]})",
    "Date.add(~D[2024-01-30], 3) |> Date.to_string()",
    "if 1 in [1, 2] and not false, do: :yes, else: :no",
    "unless nil || false, do: 1",
    "1..10//3 |> Enum.to_list()",
    "match?({:ok, n} when n > 1, {:ok, 2})",
    "is_struct(MapSet.new())",
    "Code.ensure_loaded?(String)",
    "Stream.iterate(1, &(&1 * 2)) |> Enum.take(5)",
    "Enum.join([1, :a, \"b\"], \"-\")",
    "Bitwise.band(6, 3)",
    "Enum.reduce(1..100, 0, fn x, acc -> x + acc end)",
    "fib = fn f, n -> if n < 2, do: n, else: f.(f, n - 1) + f.(f, n - 2) end; fib.(fib, 10)",
    "Base.encode16(<<255>>)",
    "[a | _] = [1, 2]; a",
    "'abc'",
    "{1.5, 2 ** 70, -3, nil, true}"
  ]

  # "common Elixir control flow"
  test "what is allowed gives what Elixir gives" do
    parent = Parent.start()

    for code <- @same do
      {expected, _} = Code.eval_string(code)
      assert {code, texts(eval(parent, code)[:value])} == {code, texts(expected)}
    end
  end

  # Whether an atom is one that the evaluator knew before depends on what it has loaded.
  defp texts(atom) when is_atom(atom), do: to_string(atom)
  defp texts(list) when is_list(list), do: Enum.map(list, &texts/1)
  defp texts(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> texts() |> List.to_tuple()
  defp texts(map) when is_map(map), do: Map.new(map, fn {key, value} -> {texts(key), texts(value)} end)
  defp texts(other), do: other

  # "(`binding/0`, `try/1`, `Code.ensure_loaded?/1`" work in the port sandbox, where `:dune` restricts them.
  test "a map that says it is a file's stream reads nothing" do
    parent = Parent.start()

    code = ~S"""
    key = Map.keys(1..2) |> Enum.find(&(to_string(&1) == "__struct__"))
    fields = %{modes: [], line_or_bytes: :line, raw: true, node: :nonode@nohost, path: "/etc/passwd"}
    fields |> Map.put(key, File.Stream) |> Enum.to_list()
    """

    assert error(parent, code) =~ "this stream is restricted"

    assert error(parent, String.replace(code, "Enum.to_list()", "then(&Enum.into([\"x\"], &1))")) =~
             "restricted"
  end

  # Compiled, an expression is a program for a machine that trusts it.
  test "an expression that code has changed is compiled from its source" do
    parent = Parent.start()
    code = "bad = %{~r/a(.)/ | re_pattern: {:re_pattern, 1, 0, 0, \"evil\"}}\n"
    assert value(parent, code <> "{\"xab\" =~ bad, Regex.run(bad, \"xab\")}") == {true, ["ab", "b"]}

    assert value(parent, "{String.replace(\"xab\", bad, \"-\"), String.split(\"xab\", bad)}") ==
             {"x-", ["x", ""]}

    assert value(parent, "r = Regex; f = &String.match?/2; {r.scan(bad, \"ab\"), f.(\"ab\", bad)}") ==
             {[["ab", "b"]], true}
  end

  # "evaluation timeout", here before the parent's own: each limit ends an evaluation, not the session.
  test "what is too much ends the evaluation with a sentence" do
    parent = Parent.start()
    eval(parent, "kept = 1")

    for {code, limits, said} <- [
          {String.duplicate("x = 1\n", 1_700_000), [],
           "the code has 10200000 bytes, at most 262144 are taken"},
          {"f = fn f -> f.(f) end; a = 1; f.(f)", [reductions: 20_000_000], "more than 20000000 steps"},
          {"b = 2; f = fn f -> f.(f) end; f.(f)", [time_ms: 300], "port code evaluation timed out"},
          {"Enum.reduce(Stream.cycle([1]), [1], fn _, l -> l ++ l end)", [], "64000000 bytes of memory"},
          {"Enum.reduce(Stream.cycle([1]), \"xxxx\", fn _, t -> t <> t end)", [], "bytes"},
          {"String.duplicate(\"x\", 1_073_741_824)", [], "a binary of 1073741824 bytes"},
          {"<<0::size(8_589_934_592)>>", [], "a binary of 1073741824 bytes"},
          {"Enum.join(List.duplicate(String.duplicate(\"x\", 1_000_000), 1000))", [],
           "a binary of 1000000000 bytes"},
          {"String.pad_leading(\"x\", 1_073_741_824)", [], "a binary of 1073741824 bytes"},
          {"f = fn f, n -> 1 + f.(f, n + 1) end; f.(f, 0)", [], "64000000 bytes of memory"},
          {"Enum.to_list(1..200_000)", [], "the value cannot cross: it has more than 60000 parts"},
          {"Enum.reduce(1..100, [], fn _, l -> [l] end)", [],
           "the value cannot cross: it is nested deeper than 48"},
          {"Enum.reduce(1..60, [1], fn _, l -> [l, l] end)", [], "the value cannot cross"},
          {"String.duplicate(\"[\", 5000)", [source_bytes: 10],
           "the code has 27 bytes, at most 10 are taken"},
          {String.duplicate("[", 5000) <> String.duplicate("]", 5000), [], "code may be nested 1000 deep"},
          {<<"x = ", 255>>, [], "the code is not UTF-8"},
          {"1 +", [], "syntax error: the code ends too early (line 1)"},
          {"\n\n)", [], "syntax error: "}
        ] do
      assert %{error: error, binding: %{"kept" => 1}} = eval(parent, code, limits: limits)
      assert error =~ said
    end

    assert value(parent, "{a, b, kept}") == {1, 2, 1}
  end

  test "printing: both halves of it are kept, and no frame is hurt" do
    parent = Parent.start()
    code = "for n <- 1..20_000, do: IO.puts(\"line \#{n} \#{String.duplicate(\"äx\", 100)}\"); :done"
    assert %{value: :done, output: output} = eval(parent, code, limits: [output_bytes: 10_001])
    assert byte_size(output) < 10_100 and String.valid?(output)
    assert output =~ "line 1 " and output =~ "line 20000 " and output =~ ~r/\n\[\d+ bytes cut\]\n/
    assert %{output: ""} = eval(parent, "1")
    # 1 GB of it: what is printed is gone as soon as it is past the halves.
    code = "t = String.duplicate(\"x\", 10_000_000); for _ <- 1..100, do: IO.write(t); t = 1"
    assert %{output: output} = eval(parent, code)
    assert byte_size(output) < 1_048_700 and output =~ "bytes cut"
    assert %{output: "e\n{1, \"a\"}\n"} = eval(parent, "IO.puts(:stderr, \"e\"); IO.inspect({1, \"a\"})")
    # A variable that is too large for a frame is dropped, and the output says so.
    assert %{output: output} = eval(parent, "large = Enum.to_list(1..200_000); 1")
    assert output =~ "large is not kept after this evaluation: it has more than 60000 parts"
    assert error(parent, "large") =~ "undefined variable large: it has more than"
  end

  # "Calling `read_file.(...)`, `search.(...)`, or `done.(...)` sends a request to the parent and returns
  # the parent result to the child code."
  test "gates" do
    parent = Parent.start()
    assert value(parent, "read_file.(\"a\") <> \"!\"") == "text of a!"
    assert value(parent, "Enum.map([\"a\", \"b\"], read_file)") == ["text of a", "text of b"]
    assert value(parent, "echo.()") == []
    assert value(parent, "echo.(1, %{a: {2, ~D[2024-01-02]}})") |> inspect() =~ "\"year\" => 2024"
    assert value(parent, "read_file.(1, 2)") == "read_file takes one path, got [1, 2]"
    assert value(parent, "search.(1)", gates: ["search"]) == "unknown gate: search"
    assert error(parent, "search.(1)") == "undefined variable search"
    assert error(parent, "echo.(Enum.to_list(1..200_000))") =~ "the arguments of echo cannot cross"
    assert error(parent, "echo.(String.duplicate(\"x\", 1_100_000))") =~ "at most 1048576 bytes can"
    assert byte_size(error(parent, "raise String.duplicate(\"ä\", 10_000)")) < 8192

    assert error(parent, "read_file = 1") == "read_file is a gate here: choose another name for the variable"
    refute Map.has_key?(eval(parent, "g = read_file; 1").binding, "g")
    alive(parent)

    # A variable that comes with a gate's name does not hide the gate.
    parent = Parent.start(binding: %{"done" => 5, "x" => 1})
    assert %{value: 1, terminated: true} = eval(parent, "done.(x)")
  end

  test "nothing of the code runs after a successful done" do
    parent = Parent.start()

    code =
      "a = 1\nb = try do done.(\"fin\") catch _, _ -> IO.puts(\"caught\") after IO.puts(\"after\") end\nIO.puts(\"later\")"

    assert %{value: "fin", terminated: true, output: "", binding: %{"a" => 1} = binding} = eval(parent, code)
    refute Map.has_key?(binding, "b")
    # Whether a session goes on is the parent's to say: to be done twice is to be done again.
    assert %{value: 2, terminated: true} = eval(parent, "done.(2); done.(3)")

    refused = fn {:gate, "done", _} -> %{gate: "done", result: "not yet", is_error: true} end

    assert %{value: "not yet", terminated: false, output: "on\n"} =
             eval(parent, "r = done.(1); IO.puts(\"on\"); r", answer: refused)
  end

  # "rewritten to injected proxy closures. The parent constructs and runs the children"
  test "children are asked of the parent" do
    parent = Parent.start()

    for code <- [
          "new(%{a: 1})",
          "cast(\"c\", \"do\")",
          "cast(\"c\", \"do\", %{t: 1})",
          "cast_batch([1])",
          "cast_batch([1], [])"
        ],
        name <- ["Cantrip", "Caisson"] do
      function = code |> String.split("(") |> hd()
      assert value(parent, "#{name}.#{code}") =~ "#{function}: ["
    end

    assert value(parent, "c = Cantrip.new(1); Enum.map([1], &Cantrip.cast(c, &1))") == [
             "cast: [\"new: [1]\", 1]"
           ]

    alive(parent)
  end

  # "the child compiles and loads the module in the child BEAM only" ... "so the same turn can call the
  # module after a successful `compile_and_load`."
  test "hot loading" do
    allow = fn {:compile, [args]} -> {:compile_allowed, args} end
    parent = Parent.start(gates: ["compile_and_load"], answer: allow)
    load = fn name, source -> "compile_and_load.(%{module: #{inspect(name)}, source: #{inspect(source)}})" end

    assert error(parent, "Hot.Math.twice(1)") =~ "function Hot.Math.twice/1 is restricted"
    hot = load.("Hot.Math", "defmodule Hot.Math do def twice(n), do: 2 * n end")
    assert value(parent, hot <> "; Hot.Math.twice(21)") == 42
    assert_received {:observed, %{is_error: false, result: "loaded Hot.Math"}}
    assert value(parent, "Enum.map([1], &Hot.Math.twice/1)") == [2]
    # Once more is allowed for what this session made.
    assert value(parent, String.replace(hot, "2 * n", "3 * n") <> "; Hot.Math.twice(21)") == 63

    assert value(
             parent,
             "{" <> load.("Hot.In", "defmodule Hot.In do def one, do: 1 end") <> ", Hot.In.one()}"
           ) == {"loaded Hot.In", 1}

    for {name, source, said} <- [
          {"Hot.A", "defmodule Hot.B do end", "the source defines Hot.B, not Hot.A"},
          {"Hot.A", "defmodule Hot.A do end\ndefmodule File do end",
           "the source is to be one defmodule Hot.A"},
          {"Hot.A", "defmodule Hot.A do defmodule B do end end", "the source defines more than Hot.A"},
          {"Hot.A", "IO.puts(1)", "the source is to be one defmodule Hot.A"},
          {"Hot.A", "defmodule Hot.A do", "syntax error"},
          {"Hot.A", "defmodule Hot.A do def f, do: x end", "undefined"},
          {"Hot.A", "defmodule Hot.A do Module.create(Hot.C, (quote do end), __ENV__) end",
           "[Hot.C, Hot.A], not Hot.A alone"},
          {"Caisson.Evaluator", "defmodule Caisson.Evaluator do end", "a name of the evaluator's own"},
          {"Cantrip", "defmodule Cantrip do end", "a name of the evaluator's own"},
          {"File", "defmodule File do end", "File exists already"},
          {"lower", "defmodule Lower do end", "no name of a module"}
        ] do
      told = value(parent, load.(name, source))
      assert {source, told =~ said} == {source, true}, told
    end

    deny = fn {:compile, _} ->
      {:compile_denied, %{gate: "compile_and_load", result: "module not allowed", is_error: true}}
    end

    assert value(parent, hot, answer: deny) == "module not allowed"
    assert error(parent, "Hot.A.f()") =~ "restricted"
    assert error(parent, hot, gates: []) =~ "undefined variable compile_and_load"
  end

  test "what a parent does wrong is answered" do
    parent = Parent.open()
    Parent.send_frame(parent, {:eval, 1, "1", %{}})
    assert {:eval_error, 1, %{}, "not initialized" <> _, ""} = Parent.receive_frame(parent)
    Parent.send_frame(parent, {:init, 5})
    assert {:init_error, "a binding is a map of names and values"} = Parent.receive_frame(parent)
    Parent.send_frame(parent, {:init, [x: 1]})
    assert {:ready, _} = Parent.receive_frame(parent)
    Parent.send_frame(parent, {:eval, 7, 5, %{}})
    assert {:eval_error, 7, %{"x" => 1}, "an eval is" <> _, ""} = Parent.receive_frame(parent)

    # Two at once: the second is refused, the first goes on.
    Parent.send_frame(parent, {:eval, 1, "read_file.(1)", %{gates: ["read_file"]}})
    assert {:gate_call, 1, "read_file", [1]} = Parent.receive_frame(parent)
    Parent.send_frame(parent, {:eval, 2, "2", %{}})
    assert {:eval_error, 2, %{}, "an evaluation is running: one at a time", ""} = Parent.receive_frame(parent)
    Parent.send_frame(parent, {:eval, 1, "2", %{}})
    assert {:eval_error, 1, %{}, "an evaluation is running: one at a time", ""} = Parent.receive_frame(parent)
    # An answer to what was not asked is none.
    Parent.send_frame(parent, {:gate_result, 9, %{result: "other"}})
    Parent.send_frame(parent, {:api_result, 1, "other"})
    Parent.send_frame(parent, {:gate_result, 1, %{result: "own"}})
    assert {:eval_result, 1, _, "own", false, ""} = Parent.receive_frame(parent)

    # What is no frame of this protocol ends the evaluator: it cannot be answered.
    Port.command(parent.port, "nonsense")
    assert {:exited, 1} = Parent.receive_frame(parent)
  end

  # "The port boundary keeps the evaluator, hot-loaded modules, and child-spawned work out of the host BEAM."
  test "it ends with its host" do
    parent = Parent.start()
    {:os_pid, pid} = Port.info(parent.port, :os_pid)
    Parent.send_frame(parent, {:eval, 1, "f = fn f -> f.(f) end; f.(f)", %{}})
    assert File.exists?("/proc/#{pid}")
    Parent.close(parent)
    assert Enum.any?(1..1200, fn _ -> Process.sleep(50) && not File.exists?("/proc/#{pid}") end)
  end

  # "`sandbox: :port_unrestricted` keeps the child process and timeout cleanup but evaluates raw Elixir in
  # that child."
  test "unrestricted" do
    parent = Parent.start(sandbox: "port_unrestricted")
    assert value(parent, "File.cwd!()") == File.cwd!()

    assert value(
             parent,
             "import Enum, only: [sum: 1]; x = sum([1, 2]); defmodule Own do def f, do: 5 end; Own.f() + x"
           ) == 8

    assert value(parent, "read_file.(\"a\") <> inspect(echo.(1, 2)) <> inspect(Cantrip.new(1))") =~
             "text of a[1, 2]"

    assert value(parent, "Task.async(fn -> read_file.(\"b\") end) |> Task.await()") == "text of b"

    # Whatever prints, and however: frames have descriptors of their own.
    code = """
    :erlang.display(:hello)
    IO.puts(:user, "user")
    IO.puts(:stderr, "error")
    :io.put_chars(:user, 'chars')
    Port.open({:spawn, "echo corrupt"}, [:nouse_stdio])
    :logger.error("logged")
    spawn(fn -> raise "crash" end)
    Process.sleep(200)
    IO.puts("own")
    """

    assert %{output: output} = eval(parent, code)
    for text <- ["user\n", "error\n", "chars", "own\n"], do: assert(output =~ text)
    alive(parent)

    # A process that an evaluation left behind cannot call gates when none runs.
    code = """
    pid = self()

    spawn(fn ->
      ref = Process.monitor(pid)
      receive do {:DOWN, ^ref, _, _, _} -> :over end
      try do read_file.("x") rescue e -> :persistent_term.put(:told, e.message) end
    end)
    1
    """

    assert value(parent, code) == 1
    Process.sleep(2000)
    assert value(parent, ":persistent_term.get(:told)") == "no evaluation is running: nobody can be asked"
    assert %{value: 3, terminated: true} = eval(parent, "spawn(fn -> done.(3) end); Process.sleep(:infinity)")
    assert error(parent, "1 / 0") =~ "ArithmeticError"
    assert error(parent, "Process.exit(self(), :boom)") == "the evaluation's process ended: :boom"
    alive(parent)
  end

  test "the page's session" do
    page = File.read!(Path.join(__DIR__, "../../../docs/media/elixir.md"))
    [_, code] = Regex.run(~r/```elixir\n(.*?)```/s, page)
    code = String.replace(code, "build/evaluators/elixir", Parent.folder())
    {binding, _} = Code.eval_string(code)
    assert binding == %{"numbers" => [1, 2, 3], "total" => 6}
  end

  # "elixir -pa ... -e": started directly, where only what the VM itself prints could get between frames.
  test "without the script" do
    argv = ["--erl", "-noinput", "-pa", Parent.folder(), "-e", "Caisson.Evaluator.main()"]
    parent = Parent.start(argv: {System.find_executable("elixir"), argv})
    assert %{value: 2, output: "x\n"} = eval(parent, "IO.puts(\"x\"); 1 + 1")
  end

  # "The evaluator prints what a prompt may teach from the table of the restriction."
  test "what it says it allows is what it allows" do
    {text, 0} = System.cmd(Path.join(Parent.folder(), "caisson-elixir"), ["--describe"])
    assert text =~ "Enum: all? any?" and text =~ ":math: " and not (text =~ "File")
    {_, 2} = System.cmd(Path.join(Parent.folder(), "caisson-elixir"), ["other"], stderr_to_stdout: true)
    {raw, 0} = System.cmd(Path.join(Parent.folder(), "caisson-elixir"), ["--describe", "port_unrestricted"])
    assert raw =~ "unrestricted"
  end
end

defmodule NetTest do
  use ExUnit.Case, async: false

  alias Caisson.Evaluator.{Names, Net, Restricted}

  setup do
    Names.start()
  end

  # What the check of the written code lets pass by mistake does not pass the compiler.
  test "the second net alone" do
    for {code, said} <- [
          {"File.read(\"x\")", "function File.read/1"},
          {"&File.read/1", "function File.read/1"},
          {"spawn(fn -> 1 end)", "function"},
          {":erlang.halt()", "function :erlang.halt/0"},
          {"fn -> [System.cmd(\"id\", [])] end", "function System.cmd/2"},
          {"require Logger; Logger.info(\"x\")", "function"},
          {"import File; read(\"x\")", "function File.read/1"},
          {"alias File, as: String; String.read(\"x\")", "function File.read/1"},
          {"String.to_atom(\"x\")", "function"}
        ] do
      error =
        assert_raise Restricted, fn ->
          Code.eval_quoted_with_env(Code.string_to_quoted!(code), [], Code.env_for_eval(tracers: [Net]))
        end

      assert {code, error.message =~ said} == {code, true}
      assert error.message =~ "is restricted"
    end
  end
end

defmodule AtomsTest do
  use ExUnit.Case, async: false

  alias Caisson.Evaluator.{Check, Names}

  # The code of an evaluation, in this VM, whose table can be counted.
  defp run(code) do
    limits = %{source_bytes: 1_000_000, heap_bytes: 512_000_000}

    job = %{
      code: code,
      sandbox: :port,
      device: Process.group_leader(),
      gates: [],
      limits: limits,
      binding: %{},
      handles: %{}
    }

    {pid, monitor} = Caisson.Evaluator.Run.start(self(), job)

    receive do
      {:finished, ^pid, result} -> Process.demonitor(monitor, [:flush]) && result
      {:DOWN, ^monitor, _, _, reason} -> {:down, reason}
    end
  end

  defp count, do: :erlang.system_info(:atom_count)

  setup do
    Names.start()
  end

  test "a million names leave no atoms" do
    # What is read and checked, and named for the compiler: all that sees a name.
    names = fn from -> Enum.map_join(from..(from + 3999), ",", &"name_of_a_variable_#{&1}") end

    read = fn from ->
      {:ok, tree} = Names.read("fn [#{names.(from)}] -> 1 end")
      tree
    end

    check = fn tree ->
      {:ok, tree} = Check.statement(tree, MapSet.new())
      {:ok, _, _} = Names.variables(tree, [])
    end

    check.(read.(0))
    first = count()

    for at <- 1..250 do
      tree = read.(at * 4000)
      if rem(at, 10) == 0, do: check.(tree)
    end

    assert count() - first < 20

    # What the compiler makes of them has numbers, which are atoms too, whoever is bound how often.
    code = fn eval, times ->
      "fn -> " <> Enum.map_join(1..800, ";", &"v_#{eval}_#{div(&1, times)} = 1") <> " end"
    end

    for times <- 1..15, do: assert({:ok, _, _} = run(code.(times, times * times)))
    assert count() - first < 10_000
    for code <- ["no_function(1)", "No.Module.call(1)"], do: assert({:error, _} = run(code))
    grown = count()
    for times <- 1..15, do: assert({:ok, _, _} = run(code.(100 - times, times * times)))
    assert count() - grown < 20

    # Functions, modules and keys that do not exist make none either.
    for n <- 1..300, do: assert({:error, _} = run("no_function_#{n}(1)"))
    for n <- 1..300, do: assert({:error, _} = run("No.Module#{n}.call(1)"))
    assert count() - grown < 40
  end

  test "atoms that are values have an end" do
    assert {:ok, _, _} = run("[" <> Enum.map_join(1..9000, ",", &":value_#{&1}") <> "]")
    assert {:error, why} = run("[" <> Enum.map_join(1..9000, ",", &":other_value_#{&1}") <> "]")
    assert why =~ "this session has made 10000 new atoms: use texts instead"
    made = count()
    for n <- 1..500, do: assert({:error, _} = run(":further_value_#{n}"))
    assert count() - made < 20
    assert {:ok, _, _} = run("[:ok, :value_1]")
  end
end
