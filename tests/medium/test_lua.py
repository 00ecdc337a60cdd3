"""caisson-lua by itself: how code is cut, what stays, what is refused, and what bounds it. What the code is given here
is what a model would write, and what an attacker would."""
import pytest
from evaluator import Atom, Evaluator

NIL = Atom("nil")


@pytest.fixture
def lua():
    with Evaluator() as evaluator:
        assert evaluator.first == "ready"
        yield evaluator


@pytest.mark.parametrize("code, value", [
    ("1 + 1", 2), ("return 3", 3), ("return 3, 4", 3), ("", NIL), ("-- nothing", NIL), ("local x = 1", NIL),
    ("local x = 1 x", 1), ("local x, y = 1 y", NIL), ("x = 5 x", 5), ("x = 7;;; x", 7), ("'a' -- b", b"a"),
    ("x = 5 -- [[\n'v'", b"v"), ("x = 1 'v'", b"v"), ("x = 1 {2}", [2]), ("x = 2 (x)", 2), ("x = {1, 2} #x", 2),
    ("f = function(n) return n * 2 end f(21)", 42), ("local function f(n) return n end f(1)", 1),
    ("function f() return 1 end (f())", 1), ("if true then x = 1 end (x)", 1), ("for i = 1, 3 do x = i end x", 3),
    ("while (function() return false end)() do end 4", 4), ("repeat x = 1 until x == 1 y = x y", 1),
    ("do local hidden = 1 end hidden", NIL), ("local p <const> = 4 p", 4), ("goto l; x = 1 ::l:: return 5", 5),
    ("if true then return 9 end; x = 1", 9), ("x = [==[ ]] end ]==] #x", 8), ("x = 'a\\\nb' #x", 3),
    ("x = 0x1p4 x", 16.0), ("x = 1e-2 x", 0.01), ("t = {f = function() return 1 end} t.f()", 1), ("not nil", True),
    ("{a = {1, {b = 'c'}}}", {b"a": [1, {b"b": b"c"}]}), ("{}", []), ("{[2] = 1}", {2: 1}), ("print", b"function"),
    ("{print, 1}", [b"function", 1]), ("1 / 0", b"inf"), ("t = {} t.t = t t", {b"t": b"table (contains itself)"}),
    ("load('return 5')()", 5), ("load('\\27Lua')", NIL), ("coroutine.wrap(function() coroutine.yield(6) end)()", 6),
])
def test_value(lua, code, value):
    assert lua.value(code) == value


@pytest.mark.parametrize("code, reason", [
    ("os.execute('ls')", "code:1: function os.execute is restricted"),
    ("\n\nio.open('x')", "code:3: function io.open is restricted"),
    ("require 'x'", "function require is restricted"), ("dofile('x')", "function dofile is restricted"),
    ("string.dump(print)", "function string.dump is restricted"), ("debug.sethook()", "function debug.sethook is restricted"),
    ("package.loadlib('x', 'y')", "function package.loadlib is restricted"), ("('').dump", "function string.dump is restricted"),
    ("setmetatable({}, {__gc = print})", "a metatable with __gc is restricted"), ("local c <close> = nil", "<close> is restricted"),
    ("error({})", "the error is no text but a table"), ("nothing()", "attempt to call a nil value (global 'nothing')"),
    ("1 +", "near <eof>"), ("x = = 1", "near '='"), ("x = 'a", "unfinished string"),
    ("('x'):rep(1e9)", "string.rep makes at most"), ("(''):rep(1e18)", "string.rep makes at most"),
    ("('a'):find(('a-'):rep(600))", "a pattern has at most"), ("string.format('%9999d', 1)", "invalid conversion"),
    ("table.insert(setmetatable({}, {__len = function() return 1e15 end}), 1, 2)", "__len is restricted"),
    ("table.move({}, 1, 1e15, 2)", "at most"), ("table.concat({}, '', 1, 1e15)", "at most"),
    ("s = 'a' while true do s = s .. s end", "memory limit reached"),
    ("t = {} while true do t = {t, t} t[3] = ('x'):rep(1e6) .. #t end", "memory limit reached"),
    ("x = " + "(" * 5000 + ")" * 5000, "overflow"), ("x = " + "{" * 5000, "overflow"), ("-" * 70000, "too long"),
])
def test_refused(lua, code, reason):
    assert reason in lua.error(code)
    assert lua.value("1") == 1  # and it goes on


def test_steps(lua):
    """A loop that allocates nothing, and catches whatever is raised in it."""
    code = "while true do pcall(function() while true do end end) x = 1 end"
    assert "step limit reached" in lua.error(code)
    code = "c = coroutine.create(function() while true do end end) while true do coroutine.resume(c) end"
    assert "step limit reached" in lua.error(code)
    assert lua.value("x") == NIL


def test_recursion(lua):
    """Whichever is met first, Lua's stack or the memory."""
    reason = lua.error("function r(n) return 1 + r(n + 1) end r(1)")
    assert "stack overflow" in reason or "memory limit" in reason
    assert lua.value("1") == 1


def test_statements_survive(lua):
    """What finished before a failure stays, and is told with it."""
    frame = lua.eval("x = 1\nlocal y = {2}\nerror('no')\nz = 3")
    assert frame[0] == "eval_error" and frame[2] == {b"x": 1, b"y": [2]} and frame[3] == b"code:3: no"
    assert lua.value("{x, y[1], z}") == [1, 2]
    # Nothing runs of what cannot be compiled as a whole.
    assert "near" in lua.error("x = 2\ny = = 3")
    assert lua.value("x") == 1


def test_binding():
    """Plain values go out and come back; functions and gates do not."""
    with Evaluator() as first:
        frame = first.eval("a = {1, {b = 'c'}, d = true} f = print g = {f = print, n = 1} s = '\\0\\255' loop = {} loop[1] = loop")
    assert set(frame[2]) == {b"a", b"g", b"s"}
    with Evaluator(frame[2]) as second:
        assert second.value("{a.d, g.n, g.f == nil, s == '\\0\\255'}") == [True, 1, True, True]


def test_output(lua):
    assert lua.eval("print('a', 1, nil) print()")[5] == b"a\t1\tnil\n\n"
    assert lua.eval("print(('x'):rep(300000))")[5].startswith(b"x" * 1000)
    assert b"more bytes were printed" in lua.eval("for i = 1, 100 do print(('x'):rep(10000)) end")[5]
    assert lua.eval("1")[5] == b""  # none is left over
    assert lua.eval("print('a') error('b')")[4] == b"a\n"


def test_print_keeps_its_stack(lua):
    """On a coroutine's own stack, which has room for the arguments and little more."""
    code = """a = {} for i = 1, 50 do a[i] = 'AAAAAAAA' end
    local keep = {} for i = 1, 300 do keep[i] = coroutine.create(print) end
    for i = 1, 300 do assert(coroutine.resume(keep[i], table.unpack(a))) local z = {} for k = 1, 20 do z[k] = {k} end end
    return 'survived'"""
    frame = lua.eval(code)
    assert frame[3] == b"survived" and frame[5] == (b"\t".join([b"AAAAAAAA"] * 50) + b"\n") * 300


def test_print_in_tostring(lua):
    """What prints while it is printed takes the room that was left."""
    frame = lua.eval("print(setmetatable({}, {__tostring = function() print(('x'):rep(300000)) return ('y'):rep(300000) end}))")
    assert frame[0] == "eval_result" and frame[5].startswith(b"x") and b"more bytes were printed" in frame[5]


def test_gates():
    def fail(*_):
        raise ValueError("it failed")

    with Evaluator(gates={"read_file": lambda path: b"of " + path, "fail": fail, "rows": lambda: [{b"a": 1}]}) as lua:
        assert lua.value("read_file('x')") == b"of x"
        assert lua.value("rows()[1].a") == 1
        assert lua.error("fail()") == "code:1: it failed"
        assert lua.value("select(2, pcall(fail))") == b"it failed"
        frame = lua.eval("read_file = 5 read_file")
        assert frame[3] == 5 and frame[2] == {}  # a name of a gate is never bound
        assert lua.value("read_file('y')") == b"of y"
        assert lua.value("coroutine.wrap(function() return read_file('z') end)()") == b"of z"
        assert "too large" in lua.error("read_file(('x'):rep(2000000))")


def test_done(lua):
    """Nothing after it runs, and nothing catches it."""
    frame = lua.eval("pcall(function() done({1}) end) x = 1")
    assert frame[0] == "eval_result" and frame[3] == [1] and frame[4] is True
    assert lua.value("x") == NIL


@pytest.mark.parametrize("ref", [7, Atom("r"), (1, b"x"), [b"a"], 2 ** 70])
def test_ref(lua, ref):
    assert lua.eval("1", ref=ref)[1] == ref


def test_nonsense_ends_it(lua):
    lua.send((Atom("init"), {}))
    with pytest.raises(EOFError):
        lua.receive()
    assert lua.child.wait(10) == 1
