ExUnit.start(timeout: 60_000, capture_log: true)
