# SPDX-License-Identifier: GPL-2.0
#
# jobs.rb SERVER FOLDER JOBS SECONDS: JOBS jobs, delayed by up to SECONDS, are put to a twheeld
# whose store is in FOLDER, and taken out again; a schedule puts one more each second. Meanwhile
# the server is killed with -9, twice. What came is counted, and ends this with status 1 if it is
# not what was put. PATIENCE in the environment: seconds without any job.

require_relative 'books'
require_relative 'server'

KILLS = 2

program, folder, jobs, seconds = ARGV
jobs = jobs.to_i
$stdout.sync = true
Thread.abort_on_exception = true
server = Server.new(program, folder, folder)
begin
  fine = play(server, jobs, seconds.to_i) do |books|
    (1..KILLS).each do |n|
      wait_for(books, jobs * n / (KILLS + 1)) { books.delivered }
      server.kill
      puts format('kill -9 after %d of %d; it is back after %.2f s', books.delivered, jobs,
                  server.kills.last.end - server.kills.last.begin)
    end
  end
ensure
  server.end_now
end
exit fine
