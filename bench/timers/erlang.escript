#!/usr/bin/env escript
%% SPDX-License-Identifier: GPL-2.0
%%! +S 1
%% What cases.h asks, of Erlang's timers, which send a message to a process

row(Name, Text) -> io:format("\t~s\t~s", [Name, Text]).
now_ms() -> erlang:monotonic_time(microsecond) / 1000.

busy(Delay) -> busy_until(now_ms() + Delay).
busy_until(End) -> case now_ms() < End of true -> busy_until(End); false -> ok end.

never(Name, Value) ->
    Text = try erlang:send_after(Value, self(), never) of
        Timer -> receive never -> "at once" after 100 -> erlang:cancel_timer(Timer), "waits" end
    catch error:badarg -> "refused" end,
    Name ++ ": " ++ Text.

many(Times, Last) when Times == 300 -> Last;
many(Times, Last) ->
    I = rand:uniform(100),
    case lists:keyfind(I, 1, Last) of
        {I, Timer} -> erlang:cancel_timer(Timer);
        false -> ok
    end,
    many(Times + 1, lists:keydelete(I, 1, Last) ++ [{I, erlang:send_after(200, self(), {order, I})}]).

order(Seen) -> receive {order, I} -> order([I | Seen]) after 500 -> lists:reverse(Seen) end.

ticks(Began, Seen) ->
    receive tick ->
        At = now_ms() - Began,
        case Seen of [] -> busy(2600 - At); _ -> ok end,
        if At > 3500 -> lists:reverse([At | Seen]); true -> ticks(Began, [At | Seen]) end
    end.

%% How often was it sent again when another message came?
again(Count, Seen) when Count == 100 -> Seen;
again(Count, Seen) ->
    receive
        again when Count == 0 -> self() ! other, erlang:send_after(0, self(), again), again(1, Seen);
        again -> erlang:send_after(0, self(), again), again(Count + 1, Seen);
        other -> again(Count, Count)
    end.

main(_) ->
    io:format("Erlang/OTP ~s, one scheduler", [erlang:system_info(otp_release)]),
    row("never", lists:join(";", [never("2^32 ms", 1 bsl 32), never("LONG_MAX", (1 bsl 63) - 1),
                                  never("UINT64_MAX", (1 bsl 64) - 1)])),

    Left = erlang:send_after(10000, self(), left),
    busy(300),
    row("left", case erlang:read_timer(Left) > 9850 of true -> "from the turn"; false -> "from now" end),
    erlang:cancel_timer(Left),
    Over = erlang:send_after(10, self(), over),
    receive over -> ok end,
    row("done", io_lib:format("read_timer is ~s once the message came", [erlang:read_timer(Over)])),

    busy(300),
    Began = now_ms(),
    erlang:send_after(200, self(), now),
    receive now -> ok end,
    row("now", case now_ms() - Began < 150 of true -> "from the turn"; false -> "from now" end),

    rand:seed(exsss, 1),
    Wanted = [I || {I, _} <- many(0, [])],
    row("equal", case order([]) of Wanted -> "as started"; _ -> "any" end),

    Start = now_ms(),
    {ok, Interval} = timer:send_interval(400, tick),
    Times = ticks(Start, []),
    timer:cancel(Interval),
    [_ | Later] = Times,
    AtOnce = [T || T <- Later, T < 2700],
    [Next | _] = Later -- AtOnce,
    row("stall", io_lib:format("~w at once, then ~s", [length(AtOnce),
        case Next < 2900 of true -> "on the grid"; false -> "a period later" end])),

    self() ! again,
    row("again", case again(0, 100) of Count when Count < 100 -> "others in between";
                                       _ -> "before all else" end),

    Late = erlang:send_after(50, self(), late),
    busy(100),
    Cancelled = erlang:cancel_timer(Late),
    row("cancel", receive late when Cancelled == false -> "runs" after 100 -> "does not run" end),
    io:format("~n").
