defmodule Caisson.Program do
  @moduledoc false
  # Where the command `caisson` is: the option `:program`, else $CAISSON, else PATH.

  alias Caisson.Error

  @how_to_get "build it with `make` in caisson's folder, then `make install`, or name the built file in $CAISSON"

  @spec find(keyword) :: {:ok, String.t()} | {:error, Error.t()}
  def find(opts) do
    cond do
      program = opts[:program] -> check(to_string(program), "the option :program names")
      program = named_by_variable() -> check(program, "$CAISSON names")
      program = System.find_executable("caisson") -> {:ok, program}
      true -> missing("caisson is not installed: it is not on PATH; " <> @how_to_get)
    end
  end

  @doc "What a program says its version is, for a sentence about one that does not understand us."
  @spec version(String.t()) :: String.t()
  def version(path) do
    case System.cmd(path, ["version"], stderr_to_stdout: true) do
      {text, 0} -> text |> String.split("\n") |> hd() |> String.slice(0, 80)
      _ -> "of an unknown version"
    end
  rescue
    _ -> "of an unknown version"
  end

  defp named_by_variable do
    case System.get_env("CAISSON") do
      empty when empty in [nil, ""] -> nil
      path -> path
    end
  end

  defp check(path, who) do
    case System.find_executable(path) do
      nil -> missing("#{who} #{path}, which is no program; #{@how_to_get}")
      found -> {:ok, found}
    end
  end

  defp missing(sentence), do: {:error, Error.new("open", :enoent, sentence)}
end
