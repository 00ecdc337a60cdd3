defmodule Caisson.MixProject do
  use Mix.Project

  @version "0.1.0"

  def project do
    [
      app: :caisson,
      version: @version,
      elixir: "~> 1.14",
      description: "Runs untrusted commands behind walls and says what they did",
      elixirc_paths: if(Mix.env() == :test, do: ["lib", "test/support"], else: ["lib"]),
      start_permanent: Mix.env() == :prod,
      deps: [],
      package: [licenses: ["Apache-2.0"], links: %{}]
    ]
  end

  def application do
    [extra_applications: [:logger], mod: {Caisson.Application, []}]
  end
end
