defmodule Caisson.Sandbox do
  @moduledoc """
  A runtime-swappable backend for what a tool needs of the outside world: files, commands, search.

      {:ok, sb} = Caisson.Sandbox.new(Caisson.Sandbox.Process, cwd: "/path/to/project")
      {:ok, %{output: "hi\\n", exit_code: 0}} = Caisson.Sandbox.exec(sb, "echo hi")
      {:ok, contents} = Caisson.Sandbox.read(sb, "mix.exs")
      :ok = Caisson.Sandbox.shutdown(sb)

  `Caisson.Sandbox.Local` has no wall and is the default; `Caisson.Sandbox.Process` is the process
  wall; `Caisson.Sandbox.Wall` is any wall by options. A module of your own implements this behaviour
  and plugs in the same way; what it does not have is `{:error, :not_supported}`.

  Every call returns `{:ok, …}`, `:ok`, `{:error, :not_supported}` or `{:error, %Caisson.Error{}}`; a
  status other than 0 is a result. Each `exec/3` is a process of its own: `cd`, `export` and shell
  variables end with it.
  """

  alias Caisson.Error

  @enforce_keys [:module, :state]
  defstruct [:module, :state]

  @type t :: %__MODULE__{module: module, state: term}
  @type spec :: module | {module, keyword}
  @type reason :: :not_supported | Error.t() | term
  @type failure :: {:error, reason}

  @doc "Builds what one session needs."
  @callback init(opts :: keyword) :: {:ok, state :: term} | failure
  @doc "Gives it back; nothing is left."
  @callback shutdown(state :: term) :: :ok | failure
  @callback read_file(state :: term, path :: String.t()) :: {:ok, binary} | failure
  @callback write_file(state :: term, path :: String.t(), content :: iodata) :: :ok | failure
  @doc "Replaces a text that occurs exactly once."
  @callback edit_file(state :: term, path :: String.t(), old :: binary, new :: binary) ::
              :ok | {:ok, map} | failure
  @callback exec(state :: term, command :: String.t() | [String.t()], opts :: keyword) ::
              {:ok, %{:output => binary, :exit_code => integer | nil, optional(atom) => term}}
              | failure
  @callback glob(state :: term, pattern :: String.t(), opts :: keyword) ::
              {:ok, [String.t()] | map} | failure
  @callback grep(state :: term, pattern :: String.t(), opts :: keyword) ::
              {:ok, [map] | map} | failure
  @callback mount(state :: term, host_path :: String.t(), path :: String.t()) :: :ok | failure

  @optional_callbacks glob: 3, grep: 3, mount: 3

  # ---- which one -----------------------------------------------------------------------------

  @doc """
  The sandbox that holds for a session, as `{module, opts}`:

    1. the option `:sandbox`, a module or `{module, opts}`
    2. what `sandbox/0` of the module under `:module` returns, if it has one
    3. `{Caisson.Sandbox.Local, cwd: …}`, with the option `:cwd` or the folder we are in

  Which wall that sandbox then has is decided in caisson's own order: its options, the variable
  `CAISSON_BACKEND`, the policy file, the built-in default. Where nobody chose a sandbox, the variable
  can therefore put a wall around the default one; who names `Local` gets it without.
  """
  @spec resolve(keyword) :: {module, keyword}
  def resolve(opts \\ []) do
    cond do
      spec = opts[:sandbox] -> named(spec)
      spec = of_module(opts[:module]) -> named(spec)
      true -> {Caisson.Sandbox.Local, cwd: opts[:cwd] || File.cwd!(), chosen: false}
    end
  end

  defp of_module(nil), do: nil

  defp of_module(module) do
    if Code.ensure_loaded?(module) and function_exported?(module, :sandbox, 0),
      do: module.sandbox()
  end

  defp named({module, opts}) when is_atom(module) and is_list(opts), do: {module, opts}
  defp named(module) when is_atom(module), do: {module, []}

  # ---- life ----------------------------------------------------------------------------------

  @doc """
  Makes one. `new()` and `new(sandbox: …, module: …, cwd: …)` choose as `resolve/1`; `new(module)`,
  `new({module, opts})` and `new(module, opts)` name it.

  It ends with `shutdown/1`, with the process that made it (or `owner: pid`), and with this VM,
  however that ends.
  """
  @spec new(spec | keyword) :: {:ok, t} | failure
  def new(spec \\ [])
  def new(opts) when is_list(opts), do: start(resolve(opts))
  def new(spec), do: start(named(spec))

  @spec new(module, keyword) :: {:ok, t} | failure
  def new(module, opts), do: start({module, opts})

  defp start({module, opts}) do
    with {:module, ^module} <- Code.ensure_loaded(module),
         {:ok, state} <- module.init(opts) do
      {:ok, %__MODULE__{module: module, state: state}}
    else
      {:error, reason} when reason in [:nofile, :embedded, :badfile] ->
        {:error, Error.new("open", :einval, "#{inspect(module)} is no module")}

      other ->
        other
    end
  end

  @spec shutdown(t) :: :ok | failure
  def shutdown(%__MODULE__{} = sb), do: sb.module.shutdown(sb.state)

  # ---- the operations ------------------------------------------------------------------------

  @doc "The content of a file. Options of ours: `:offset`, `:length` in bytes, `:timeout` in ms."
  @spec read(t, String.t(), keyword) :: {:ok, binary} | failure
  def read(sb, path, opts \\ [])
  def read(%__MODULE__{} = sb, path, []), do: sb.module.read_file(sb.state, path)
  def read(sb, path, opts), do: optional(sb, :read_file, [path, opts])

  @doc "Replaces a file, whole or not at all, and makes its folders. Option of ours: `:mode`."
  @spec write(t, String.t(), iodata, keyword) :: :ok | failure
  def write(sb, path, content, opts \\ [])

  def write(%__MODULE__{} = sb, path, content, []),
    do: sb.module.write_file(sb.state, path, content)

  def write(sb, path, content, opts), do: optional(sb, :write_file, [path, content, opts])

  @doc """
  Replaces a text that occurs exactly once. Otherwise nothing is written and the error is
  `:not_found` or `:not_unique`, with `details.occurrences`.
  """
  @spec edit(t, String.t(), binary, binary) :: :ok | {:ok, map} | failure
  def edit(%__MODULE__{} = sb, path, old, new),
    do: sb.module.edit_file(sb.state, path, old, new)

  @doc """
  Runs a command: a text for the shell, or a list of a program and its arguments.

  Options: `:cwd`, `:env` (a map or list), `:timeout` in ms, `:stdin` (iodata), `:keep_bytes` of each
  stream (1 MiB), `:tty` (`true` or `{rows, columns}`), `:id` for `cancel/2` and `signal/3`.

  The result has `output` (stdout and stderr as they came), `exit_code` (nil where it did not exit by
  itself), `stdout`, `stderr`, how many bytes of each are missing (`output_cut`, `stdout_cut`,
  `stderr_cut`), `termination`, `violations` and `usage`.
  """
  @spec exec(t, String.t() | [String.t()], keyword) :: {:ok, map} | failure
  def exec(%__MODULE__{} = sb, command, opts \\ []),
    do: sb.module.exec(sb.state, command, opts)

  @doc """
  The same as it comes: `{:stdout, bytes}`, `{:stderr, bytes}`, `{:violation, map}` and at last
  `{:exit, result}`. A command that writes faster than this is read waits. It is run by the process
  that enumerates, once each time; one that stops early ends it. Raises `Caisson.Error`.
  """
  @spec stream(t, String.t() | [String.t()], keyword) :: Enumerable.t()
  def stream(%__MODULE__{} = sb, command, opts \\ []) do
    case optional(sb, :stream, [command, opts]) do
      {:error, :not_supported} ->
        raise Error.new("stream", :not_supported, "#{inspect(sb.module)} has no stream/3")

      stream ->
        stream
    end
  end

  @doc """
  Paths that match, sorted. Options: `:cwd`, `:limit`, `:timeout`, and `details: true` for a map that
  also says whether there were more.
  """
  @spec glob(t, String.t(), keyword) :: {:ok, [String.t()] | map} | failure
  def glob(sb, pattern, opts \\ []), do: optional(sb, :glob, [pattern, opts])

  @doc """
  Lines that match, as maps with `path`, `line_number`, `line`. Options: `:path`, `:glob`,
  `:ignore_case`, `:limit`, `:context`, `:timeout`, and `details: true` as in `glob/3`.
  """
  @spec grep(t, String.t(), keyword) :: {:ok, [map] | map} | failure
  def grep(sb, pattern, opts \\ []), do: optional(sb, :grep, [pattern, opts])

  @doc "Shows one more path of the host inside, read-only unless `mode: :rw`."
  @spec mount(t, String.t(), String.t(), keyword) :: :ok | failure
  def mount(sb, host_path, path, opts \\ [])
  def mount(sb, host_path, path, []), do: optional(sb, :mount, [host_path, path])
  def mount(sb, host_path, path, opts), do: optional(sb, :mount, [host_path, path, opts])

  # ---- commands that outlive their call --------------------------------------------------------

  @doc "Starts a command that goes on; `:tag` names it. Options as `exec/3` without input and time."
  @spec start(t, String.t() | [String.t()], keyword) :: {:ok, map} | failure
  def start(sb, command, opts \\ []), do: optional(sb, :start, [command, opts])

  @doc "Its output so far; with `follow: true` until it has ended."
  @spec logs(t, String.t(), keyword) :: {:ok, map} | failure
  def logs(sb, tag, opts \\ []), do: optional(sb, :logs, [tag, opts])

  @doc "Waits for its end, or until `port: n`, `line: expression` or `text: text`; `:timeout` in ms."
  @spec wait(t, String.t(), keyword) :: {:ok, map} | failure
  def wait(sb, tag, opts \\ []), do: optional(sb, :wait, [tag, opts])

  @doc "Ends it: TERM and KILL later, or `signal: n`."
  @spec kill(t, String.t(), keyword) :: :ok | failure
  def kill(sb, tag, opts \\ []), do: optional(sb, :kill, [tag, opts])

  @doc "Commands that run, and such as have ended."
  @spec ps(t) :: {:ok, [map]} | failure
  def ps(sb), do: optional(sb, :ps, [])

  @doc "Cancels calls that were made with `id: id`."
  @spec cancel(t, term) :: :ok | failure
  def cancel(sb, id), do: optional(sb, :cancel, [id])

  @doc "Sends a signal to the command of a call that was made with `id: id`."
  @spec signal(t, term, 1..64) :: :ok | failure
  def signal(sb, id, number), do: optional(sb, :signal, [id, number])

  # ---- more of files, and of what changed ------------------------------------------------------

  @doc "What a path is; links are not followed."
  @spec stat(t, String.t()) :: {:ok, map} | failure
  def stat(sb, path), do: optional(sb, :stat, [path])

  @doc "What a folder holds."
  @spec list(t, String.t()) :: {:ok, map} | failure
  def list(sb, path), do: optional(sb, :list, [path])

  @doc "Removes a path; a folder with its content with `recursive: true`."
  @spec remove(t, String.t(), keyword) :: :ok | failure
  def remove(sb, path, opts \\ []), do: optional(sb, :remove, [path, opts])

  @doc "Renames a path."
  @spec move(t, String.t(), String.t()) :: :ok | failure
  def move(sb, path, to), do: optional(sb, :move, [path, to])

  @doc "What a copy-on-write workspace changed: `changes`, and `text` for patch(1)."
  @spec diff(t, keyword) :: {:ok, map} | failure
  def diff(sb, opts \\ []), do: optional(sb, :diff, [opts])

  @doc "Writes those changes to the workspace: `applied`, and `left` with a reason each."
  @spec commit(t, keyword) :: {:ok, map} | failure
  def commit(sb, opts \\ []), do: optional(sb, :commit, [opts])

  @doc "Keeps what changed so far under a tag."
  @spec snapshot(t, String.t()) :: {:ok, map} | failure
  def snapshot(sb, tag), do: optional(sb, :snapshot, [tag])

  @doc "Starts another sandbox, by name, with what changed so far or, with `tag: tag`, a snapshot."
  @spec fork(t, String.t(), keyword) :: {:ok, map} | failure
  def fork(sb, name, opts \\ []), do: optional(sb, :fork, [name, opts])

  @doc "What it is and uses, now."
  @spec stats(t) :: {:ok, map} | failure
  def stats(sb), do: optional(sb, :stats, [])

  @doc "What it was made as: wall, verbs, what is enforced, warnings."
  @spec info(t) :: {:ok, map} | failure
  def info(sb), do: optional(sb, :info, [])

  defp optional(%__MODULE__{module: module, state: state}, name, args) do
    if function_exported?(module, name, length(args) + 1),
      do: apply(module, name, [state | args]),
      else: {:error, :not_supported}
  end
end
