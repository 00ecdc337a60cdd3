defmodule Caisson.CustomTest do
  use ExUnit.Case, async: true

  alias Caisson.{Error, Sandbox}

  defmodule Memory do
    @moduledoc "Files in an Agent; no commands."
    @behaviour Caisson.Sandbox

    @impl true
    def init(opts), do: Agent.start_link(fn -> Map.new(opts[:files] || %{}) end)
    @impl true
    def shutdown(agent), do: Agent.stop(agent)

    @impl true
    def read_file(agent, path) do
      case Agent.get(agent, &Map.fetch(&1, path)) do
        :error -> {:error, Error.new("read", :enoent, "there is no #{path}")}
        found -> found
      end
    end

    @impl true
    def write_file(agent, path, content),
      do: Agent.update(agent, &Map.put(&1, path, IO.iodata_to_binary(content)))

    @impl true
    def edit_file(agent, path, old, new) do
      with {:ok, text} <- read_file(agent, path),
           do: write_file(agent, path, String.replace(text, old, new))
    end

    @impl true
    def exec(_agent, _command, _opts), do: {:error, :not_supported}
  end

  test "plugs in by a behaviour; what it does not have is not supported" do
    {:ok, sb} = Sandbox.new({Memory, files: %{"a" => "one"}})
    assert {:ok, "one"} = Sandbox.read(sb, "a")
    assert :ok = Sandbox.edit(sb, "a", "one", "two")
    assert {:ok, "two"} = Sandbox.read(sb, "a")
    assert {:error, %Error{code: :enoent}} = Sandbox.read(sb, "b")
    assert {:error, :not_supported} = Sandbox.exec(sb, "true")
    assert {:error, :not_supported} = Sandbox.glob(sb, "*")
    assert {:error, :not_supported} = Sandbox.grep(sb, "x")
    assert {:error, :not_supported} = Sandbox.mount(sb, "/a", "/b")
    assert {:error, :not_supported} = Sandbox.read(sb, "a", offset: 1)
    assert_raise Error, fn -> Sandbox.stream(sb, "true") end
    assert :ok = Sandbox.shutdown(sb)
  end
end
