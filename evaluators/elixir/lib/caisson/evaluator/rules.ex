defmodule Caisson.Evaluator.Rules do
  @moduledoc false
  # The one table of what code under `port` may use. `Check` reads it for what is written, `Net` for
  # what the compiler made of that, `Safe` for what is called at run time, `describe/1` for people and
  # prompts. What is not named here is restricted: a function that a later Elixir adds, too.

  # Functions of modules, whatever their arity.
  @functions [
    {Enum,
     ~w(all? any? at chunk_by chunk_every chunk_while concat count count_until dedup dedup_by drop drop_every
      drop_while each empty? fetch fetch! filter find find_index find_value flat_map flat_map_reduce
      frequencies frequencies_by group_by intersperse into join map map_every map_intersperse map_join
      map_reduce max max_by member? min min_by min_max min_max_by product random reduce reduce_while
      reject reverse reverse_slice scan shuffle slice slide sort sort_by split split_while split_with sum
      sum_by take take_every take_random take_while to_list uniq uniq_by unzip with_index zip zip_reduce
      zip_with)a},
    {Map, ~w(delete drop equal? fetch fetch! filter from_keys from_struct get get_and_update get_and_update!
      get_lazy has_key? intersect keys merge new pop pop! pop_lazy put put_new put_new_lazy reject
      replace replace! replace_lazy split split_with take to_list update update! values)a},
    {List, ~w(ascii_printable? delete delete_at duplicate first flatten foldl foldr improper? insert_at
      keydelete keyfind keyfind! keymember? keyreplace keysort keystore keytake last myers_difference
      pop_at replace_at starts_with? to_charlist to_float to_integer to_string to_tuple update_at wrap zip)a},
    {Keyword,
     ~w(delete delete_first drop equal? fetch fetch! filter from_keys get get_and_update get_and_update!
      get_lazy get_values has_key? keys keyword? merge new pop pop! pop_first pop_lazy pop_values put
      put_new put_new_lazy reject replace replace! replace_lazy split split_with take to_list update
      update! validate validate! values)a},
    {String,
     ~w(at bag_distance capitalize codepoints contains? downcase duplicate ends_with? equivalent? first
      graphemes jaro_distance last length match? myers_difference next_codepoint next_grapheme normalize
      pad_leading pad_trailing printable? replace replace_leading replace_prefix replace_suffix
      replace_trailing reverse slice split split_at splitter starts_with? to_charlist to_existing_atom
      to_float to_integer trim trim_leading trim_trailing upcase valid?)a},
    {Integer, ~w(digits extended_gcd floor_div gcd mod parse pow to_charlist to_string undigits)a},
    {Float, ~w(ceil floor max_finite min_finite parse pow ratio round to_charlist to_string)a},
    {Tuple, ~w(append delete_at insert_at product sum to_list)a},
    {MapSet, ~w(delete difference disjoint? equal? filter intersection member? new put reject size split_with
      subset? symmetric_difference to_list union)a},
    {Range, ~w(disjoint? new shift size split to_list)a},
    {Stream,
     ~w(chunk_by chunk_every chunk_while concat cycle dedup dedup_by drop drop_every drop_while duplicate
      each filter flat_map from_index intersperse iterate map map_every reject repeatedly resource run
      scan take take_every take_while transform unfold uniq uniq_by with_index zip zip_with)a},
    {Date, ~w(add after? before? beginning_of_month beginning_of_week compare day_of_era day_of_week
      day_of_year days_in_month diff end_of_month end_of_week from_erl from_erl! from_gregorian_days
      from_iso8601 from_iso8601! leap_year? months_in_year new new! quarter_of_year range shift to_erl
      to_gregorian_days to_iso8601 to_string utc_today year_of_era)a},
    {Time, ~w(add after? before? compare diff from_erl from_erl! from_iso8601 from_iso8601!
      from_seconds_after_midnight new new! shift to_erl to_iso8601 to_seconds_after_midnight to_string
      truncate utc_now)a},
    {DateTime, ~w(add after? before? compare diff from_gregorian_seconds from_iso8601 from_naive from_naive!
      from_unix from_unix! new new! shift to_date to_gregorian_seconds to_iso8601 to_naive to_string
      to_time to_unix truncate utc_now)a},
    {NaiveDateTime, ~w(add after? before? beginning_of_day compare diff end_of_day from_erl from_erl!
      from_gregorian_seconds from_iso8601 from_iso8601! new new! shift to_date to_erl
      to_gregorian_seconds to_iso8601 to_string to_time truncate utc_now)a},
    {Calendar, ~w(strftime)a},
    {Regex, ~w(compile compile! escape match? named_captures names opts replace run scan source split)a},
    {Base, ~w(decode16 decode16! decode32 decode32! decode64 decode64! encode16 encode32 encode64
      hex_decode32 hex_decode32! hex_encode32 url_decode64 url_decode64! url_encode64)a},
    {URI, ~w(append_query char_reserved? char_unescaped? char_unreserved? decode decode_query
      decode_www_form encode encode_query encode_www_form merge new new! parse query_decoder to_string)a},
    {Access, ~w(all at at! elem fetch fetch! filter get get_and_update key key! pop slice)a},
    {Bitwise, ~w(&&& <<< >>> ^^^ band bnot bor bsl bsr bxor ||| ~~~)a},
    {Version, ~w(compare match? parse parse! parse_requirement parse_requirement! to_string)a},
    {Exception, ~w(exception? message)a},
    {Atom, ~w(to_charlist to_string)a},
    {Function, ~w(identity)a},
    {IO, ~w(inspect iodata_length iodata_to_binary puts write)a},
    {Code, ~w(ensure_loaded?)a},
    {Kernel,
     ~w(!= !== * ** + ++ - -- / < <= == === =~ > >= abs apply binary_part binary_slice bit_size byte_size
      ceil div elem floor get_and_update_in get_in hd inspect is_atom is_binary is_bitstring is_boolean
      is_float is_function is_integer is_list is_map is_map_key is_non_struct_map is_number is_pid is_port
      is_reference is_tuple length map_size max min not pop_in put_elem put_in rem round struct struct!
      throw tl trunc tuple_size update_in)a},
    {:math, ~w(acos acosh asin asinh atan atan2 atanh ceil cos cosh erf erfc exp floor fmod log log10
      log2 pi pow sin sinh sqrt tan tanh)a},
    {:rand, ~w(uniform)a},
    {Cantrip, ~w(new cast cast_batch)a},
    {Caisson, ~w(new cast cast_batch)a}
  ]

  # Macros of Kernel. Their arguments are checked before they see them.
  @macros ~w(! && || and or in .. ..// <> |> if unless binding destructure is_exception is_nil is_struct
    match? raise tap then to_charlist to_string sigil_C sigil_D sigil_N sigil_R sigil_S sigil_T sigil_U
    sigil_W sigil_c sigil_r sigil_s sigil_w get_and_update_in pop_in put_in update_in)a

  @forms ~w(= ^ & . {} %{} % <<>> __block__ __aliases__ fn case cond for with try)a

  @structs [Date, Time, DateTime, NaiveDateTime, MapSet, Range, Date.Range, Regex, URI, Version]

  @exceptions [
    ArgumentError,
    ArithmeticError,
    BadArityError,
    BadBooleanError,
    BadFunctionError,
    BadMapError,
    CaseClauseError,
    CondClauseError,
    Enum.EmptyError,
    Enum.OutOfBoundsError,
    ErlangError,
    FunctionClauseError,
    KeyError,
    MatchError,
    Protocol.UndefinedError,
    RuntimeError,
    TryClauseError,
    UndefinedFunctionError,
    WithClauseError
  ]

  # Calls that go to a function of ours instead, which takes the same and bounds it.
  @replaced %{
    {Kernel, :apply, 2} => :apply,
    {Kernel, :apply, 3} => :call,
    {Kernel, :struct, 1} => :struct,
    {Kernel, :struct, 2} => :struct,
    {Kernel, :struct!, 1} => :struct!,
    {Kernel, :struct!, 2} => :struct!,
    {String, :duplicate, 2} => :duplicate,
    {String, :pad_leading, 2} => :pad_leading,
    {String, :pad_leading, 3} => :pad_leading,
    {String, :pad_trailing, 2} => :pad_trailing,
    {String, :pad_trailing, 3} => :pad_trailing,
    {IO, :iodata_to_binary, 1} => :iodata_to_binary,
    {Enum, :join, 1} => :join,
    {Enum, :join, 2} => :join,
    {IO, :puts, 2} => :puts,
    {IO, :write, 2} => :write,
    {IO, :inspect, 3} => :inspect
  }

  # A compiled expression is a program for a machine without a guard, as a text in a map that code can
  # change. Whoever takes one has it compared with what its source compiles to.
  @expressions for {module, arities} <- [
                     {Regex,
                      [names: 1, match?: 2, named_captures: 2, named_captures: 3, replace: 3, replace: 4] ++
                        [run: 2, run: 3, scan: 2, scan: 3, split: 2, split: 3]},
                     {String, [match?: 2, replace: 3, replace: 4, split: 2, split: 3]},
                     {Kernel, [=~: 2]}
                   ],
                   {name, arity} <- arities,
                   do: {module, name, arity}

  def expressions, do: @expressions

  @bounded Map.merge(
             @replaced,
             Map.new(@expressions, fn {m, f, a} = mfa -> {mfa, :"#{inspect(m)}.#{f}/#{a}"} end)
           )

  # What the compiler makes of the macros and operators above.
  @expanded [
    {:erlang,
     ~w(+ - * / div rem abs == != =:= =\\= /= =< < > >= ++ -- and or not xor andalso orelse band bor bxor
      bnot bsl bsr binary_part bit_size byte_size ceil element floor hd tl length is_atom is_binary
      is_bitstring is_boolean is_float is_function is_integer is_list is_map is_map_key is_number is_pid
      is_port is_reference is_tuple map_get map_size max min round setelement trunc tuple_size throw error
      atom_to_binary integer_to_binary float_to_binary binary_to_integer binary_to_float
      integer_to_list tuple_to_list list_to_tuple)a},
    {:lists, ~w(member reverse flatten foldl foldr last map keymember keyfind)a},
    {:maps, ~w(get find is_key keys merge put remove values to_list from_list update take new filter map)a},
    {:unicode, ~w(characters_to_list characters_to_binary)a},
    {:binary, ~w(copy)a},
    {:elixir_quote, []},
    {Kernel, ~w(! && ||  .. to_string to_charlist binding)a},
    {Kernel.Utils, ~w(raise destructure)a},
    {String.Chars, ~w(to_string)a},
    {List.Chars, ~w(to_charlist)a},
    {Regex, ~w(compile! recompile! version)a},
    {Range, ~w(new)a},
    {Enum, ~w(member?)a},
    {String, ~w(split)a},
    {Access, ~w(get)a}
  ]

  @table Map.new(@functions, fn {module, names} -> {module, MapSet.new(names)} end)
  @net Enum.reduce(@expanded, @table, fn {module, names}, table ->
         Map.update(table, module, MapSet.new(names), &MapSet.union(&1, MapSet.new(names)))
       end)
  @macro_set MapSet.new(@macros)

  alias Caisson.Evaluator.Names

  @doc "May it be called, and is it another function that is called then?"
  @spec function(module, atom, arity) :: :allowed | {:replaced, atom} | :restricted
  def function(module, name, arity) do
    case @bounded do
      %{{^module, ^name, ^arity} => safe} -> {:replaced, safe}
      _ -> if allowed?(@table, module, name), do: :allowed, else: :restricted
    end
  end

  defp allowed?(table, module, name) do
    case table do
      %{^module => names} -> MapSet.member?(names, name)
      _ -> Names.loaded?(module)
    end
  end

  @doc "May the compiler have made this of what was checked?"
  def expanded?(_, :exception, 1), do: true
  def expanded?(module, name, _), do: allowed?(@net, module, name)

  @doc "A function or macro that is written without a module."
  def local?(name), do: MapSet.member?(@macro_set, name) or allowed?(@table, Kernel, name)
  def macro?(name), do: MapSet.member?(@macro_set, name)

  def module?(module), do: is_map_key(@table, module) or Names.loaded?(module)
  def struct?(module), do: module in @structs or module in @exceptions or Names.loaded?(module)
  def exception?(module), do: module in @exceptions or Names.loaded?(module)

  @doc "The table as text, for prompts and people."
  def describe(:port_unrestricted) do
    """
    Elixir #{System.version()}, unrestricted: any module and function, in a process of its own.
    Statements run one after another; what finished ones bound is kept when a later one fails.
    Functions, pids and other handles are not kept from one evaluation to the next.
    Gates are functions: name.(argument). done.(answer) ends the session.
    """
  end

  def describe(:port) do
    functions = Enum.map_join(@functions, "\n", fn {m, names} -> "#{inspect(m)}: #{words(names)}" end)

    """
    Elixir #{System.version()}, restricted: what is not listed here is refused with a sentence.
    Statements run one after another; what finished ones bound is kept when a later one fails.
    Functions, pids and other handles are not kept from one evaluation to the next.
    Gates are functions: name.(argument). done.(answer) ends the session.

    Forms: #{words(@forms)}
    Macros: #{words(@macros)}
    Structs: #{Enum.map_join(@structs, " ", &inspect/1)}
    Exceptions: #{Enum.map_join(@exceptions, " ", &inspect/1)}
    #{functions}
    """
  end

  defp words(names), do: Enum.map_join(names, " ", &Atom.to_string/1)
end
