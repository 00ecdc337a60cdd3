defmodule Caisson.Error do
  @moduledoc """
  Why something was not done.

    * `stage` - what was being done: `"open"`, `"policy"`, `"read"`
    * `code` - an errno name or one of Caisson's own, as an atom (`:enoent`, `:etimedout`, `:invalid`,
      `:lost`); a text where this package does not know it
    * `message` - a sentence with the cause and the way out
    * `details` - more of it: `%{occurrences: 0}` of an edit
  """
  defexception [:stage, :code, :message, details: %{}]

  @type t :: %__MODULE__{
          stage: String.t(),
          code: atom | String.t(),
          message: String.t(),
          details: map
        }

  @doc false
  def new(stage, code, message, details \\ %{}) do
    %__MODULE__{stage: to_string(stage), code: code, message: message, details: details}
  end
end
