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

  @refusals [
    "TierUnavailable",
    "StrictModeUnavailable",
    "StrictModeRequired",
    "ApprovalRequired",
    "ApprovalDenied"
  ]

  @doc """
  Of `Caisson.Sandbox.new/1`: does the policy, or what this machine has, not permit such a sandbox? Else something was
  wrong or missing, and another try may do.
  """
  @spec refusal?(t) :: boolean
  def refusal?(%__MODULE__{stage: "policy", code: code}) when code in [:eperm, :eacces], do: true
  def refusal?(%__MODULE__{code: code}), do: code in @refusals

  @doc false
  def new(stage, code, message, details \\ %{}) do
    %__MODULE__{stage: to_string(stage), code: code, message: message, details: details}
  end
end
