# SPDX-License-Identifier: GPL-2.0
#
# cluster.rb SERVER FOLDER JOBS SECONDS DATABASE: as jobs.rb, with two servers on one database, a
# URI. Clients are of both, and both have the schedule. The second is killed with -9 when half has
# come, and does not come back: the first one goes on with what it had.

require_relative 'books'
require_relative 'server'

# To its clients, they are one.
class Cluster
  attr_reader :kills

  def initialize(servers)
    @servers = servers
    @kills = []
  end

  def address
    @servers.sample.address
  end

  def pause
    @servers.first.pause
  end

  def kill
    begin_kill = now
    @servers.pop.end_now
    @kills << (begin_kill..now)
  end

  def end_now
    @servers.each(&:end_now)
  end
end

program, folder, jobs, seconds, database = ARGV
jobs = jobs.to_i
$stdout.sync = true
Thread.abort_on_exception = true
servers = %w[first second].map do |name|
  Dir.mkdir("#{folder}/#{name}")
  Server.new(program, "#{folder}/#{name}", database)
end
cluster = Cluster.new(servers)
begin
  fine = play(cluster, jobs, seconds.to_i) do |books|
    wait_for(books, jobs / 2) { books.delivered }
    cluster.kill
    puts format('kill -9 of the second server after %d of %d', books.delivered, jobs)
  end
ensure
  cluster.end_now
end
exit fine
