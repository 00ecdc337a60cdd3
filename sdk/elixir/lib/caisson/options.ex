defmodule Caisson.Options do
  @moduledoc false
  # Options of a sandbox as the map of `{open, Ref, Map}`. Values are caisson's to judge; here they
  # only get their form, and a word that is no option is refused.

  alias Caisson.Error

  @ours [:cwd, :mode, :program, :start_timeout, :call_timeout, :owner, :os_env, :call_env]
  @texts [:workspace, :policy, :tier, :backend, :at, :network, :run_dir, :attach, :pool]
  @lists [:allow, :tags]

  @spec wish(keyword) :: {:ok, map} | {:error, Error.t()}
  def wish(opts) do
    Enum.reduce_while(opts, {:ok, workspace(opts)}, fn {name, value}, {:ok, wish} ->
      case option(name, value) do
        :skip -> {:cont, {:ok, wish}}
        {:ok, value} -> {:cont, {:ok, Map.put(wish, name, value)}}
        :error -> {:halt, refuse(name, value)}
      end
    end)
  rescue
    error in [Protocol.UndefinedError, ArgumentError, FunctionClauseError] ->
      {:error,
       Error.new("open", :einval, "an option makes no sense: #{Exception.message(error)}")}
  end

  @doc "`:ro` or `:rw`, by any of its names."
  def mode(mode) when mode in [:ro, :readonly, "ro"], do: {:ok, :ro}
  def mode(mode) when mode in [:rw, :readwrite, "rw"], do: {:ok, :rw}

  def mode(mode),
    do: {:error, Error.new("mount", :einval, "#{inspect(mode)} is no mode: :ro or :rw")}

  defp workspace(opts) do
    folder = Path.expand(opts[:cwd] || File.cwd!())

    cond do
      opts[:attach] || opts[:workspace] -> %{}
      mode = opts[:mode] -> %{workspace: "#{folder}:#{mode}"}
      opts[:cwd] -> %{workspace: folder}
      true -> %{}
    end
  end

  defp option(_name, nil), do: :skip
  defp option(name, _) when name in @ours, do: :skip
  defp option(name, value) when name in @texts, do: {:ok, to_string(value)}

  defp option(name, value) when name in @lists and is_list(value),
    do: {:ok, Enum.map(value, &to_string/1)}

  defp option(:record, value) when is_boolean(value), do: {:ok, value}
  defp option(:limits, value), do: pairs(value)
  defp option(:env, value), do: pairs(value)

  defp option(:mounts, value) when is_list(value) do
    mounts = Enum.map(value, &mount_word/1)
    if :error in mounts, do: :error, else: {:ok, mounts}
  end

  defp option(_, _), do: :error

  # "NAME=value", or a name alone.
  defp pairs(value) when is_list(value) or is_map(value) do
    {:ok,
     Enum.map(value, fn
       {name, value} -> "#{name}=#{value}"
       name -> to_string(name)
     end)}
  end

  defp pairs(_), do: :error

  defp mount_word(text) when is_binary(text), do: text
  defp mount_word({host, at}), do: mount_word({host, at, :ro})

  defp mount_word({host, at, mode}) do
    with {:ok, mode} <- mode(mode),
         false <- String.contains?(host, ":") or String.contains?(at, ":") do
      "#{host}:#{at}:#{mode}"
    else
      _ -> :error
    end
  end

  defp mount_word(_), do: :error

  defp refuse(name, value) do
    text = inspect(value, limit: 5, printable_limit: 60)
    {:error, Error.new("open", :einval, "#{inspect(name)}: #{text} is no option of a sandbox")}
  end
end
