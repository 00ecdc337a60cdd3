# The evaluator of Elixir code: its start against `elixir -e :ok`, and an evaluation against a BEAM
# that sends the same frame back. Medians.
#
#   CAISSON_EVALUATOR=build/evaluators/elixir elixir bench/elixir.exs
Code.require_file("../evaluators/elixir/test/parent.exs", __DIR__)

time = fn run ->
  start = System.monotonic_time(:microsecond)
  run.()
  System.monotonic_time(:microsecond) - start
end

median = fn run, times -> for(_ <- 1..times, do: time.(run)) |> Enum.sort() |> Enum.at(div(times, 2)) end

elixir = System.find_executable("elixir")
floor = median.(fn -> System.cmd(elixir, ["-e", ":ok"]) end, 9)
ready = median.(fn -> Parent.close(Parent.start()) end, 9)

IO.puts(
  "start: #{div(ready, 1000)} ms, elixir -e :ok #{div(floor, 1000)} ms, #{Float.round(ready / floor, 2)} x"
)

echo = """
port = :erlang.open_port({:fd, 0, 1}, [:binary, packet: 4])
loop = fn loop -> receive do {^port, {:data, bytes}} -> Port.command(port, bytes) end; loop.(loop) end
loop.(loop)
"""

relay = Port.open({:spawn_executable, elixir}, [:binary, packet: 4, args: ["--erl", "-noinput", "-e", echo]])

hop = fn ->
  Port.command(relay, :erlang.term_to_binary({:eval, 1, "1 + 1", %{}}))

  receive do
    {^relay, {:data, _}} -> :ok
  end
end

median.(hop, 500)
IO.puts("relay: #{median.(hop, 2000)} us")
parent = Parent.start()

for code <- ["1 + 1", "x = 5; x + 1", "Enum.sum(1..10)", "read_file.(\"a\")"] do
  median.(fn -> Parent.eval(parent, code) end, 300)
  IO.puts("#{code}: #{median.(fn -> Parent.eval(parent, code) end, 1000)} us")
end
