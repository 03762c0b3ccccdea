# SPDX-License-Identifier: GPL-2.0
#
# A twheeld of the demo.

require 'socket'

# A process that listens on a port, and puts a job each second by a schedule
class Server
  attr_reader :address, :kills

  def initialize(program, folder, store)
    @program = program
    @folder = folder
    @store = store
    configure
    probe = TCPServer.new('127.0.0.1', 0)
    @port = probe.addr[1]
    probe.close
    @address = "127.0.0.1:#{@port}"
    @kills = []
    start
  end

  # All times that pass while it is down are made up for.
  def configure
    Dir.mkdir("#{@folder}/tabs")
    File.write("#{@folder}/tabs/demo.tab",
               "@every 1s NAME=tick TUBE=demo MISFIRE=all:100 tick %t\n")
    File.write("#{@folder}/conf", <<~CONF)
      schedules = "#{@folder}/tabs";
      admin = "#{@folder}/admin";
      lease = "2s";
    CONF
  end

  def start
    @pid = spawn(@program, '-c', "#{@folder}/conf", '-b', @store, '-l', '127.0.0.1', '-p', @port.to_s)
    until listens?
      abort "demo: #{@program} ended: #{$?}" if Process.wait(@pid, Process::WNOHANG)
      sleep 0.005
    end
  end

  def listens?
    TCPSocket.new('127.0.0.1', @port).close
    true
  rescue Errno::ECONNREFUSED
    false
  end

  # No further job of the schedule is made from now on. A server that was just started may not
  # have read its store yet.
  def pause
    until_then = now + 30
    begin
      answer = UNIXSocket.open("#{@folder}/admin") do |socket|
        socket.write("POST /v1/schedules/tick/pause HTTP/1.0\r\nHost: localhost\r\n\r\n")
        socket.read
      end
    rescue Errno::ECONNREFUSED, Errno::ENOENT
      sleep 0.02
      retry if now < until_then
    end
    abort "demo: it can't be paused: #{answer}" unless answer&.include?('"ok"')
  end

  def end_now
    return unless @pid

    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @pid = nil
  end

  def kill
    begin_kill = now
    end_now
    start
    @kills << (begin_kill..now)
  end
end
