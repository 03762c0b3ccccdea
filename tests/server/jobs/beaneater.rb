# SPDX-License-Identifier: GPL-2.0
#
# beaneater.rb PORT: a conversation by Debian's ruby-beaneater. With "again", it asks for the server
# to be started again by a line, and goes on when it has one.

require 'beaneater'

def same(got, want)
  raise "got #{got.inspect}, want #{want.inspect}" unless got == want
end

beanstalk = Beaneater.new("127.0.0.1:#{ARGV[0]}")
tube = beanstalk.tubes['ruby']
beanstalk.tubes.watch!('ruby')

id = tube.put('text', pri: 7, ttr: 60)[:id]
same(tube.peek(:ready).body, 'text')
job = beanstalk.tubes.reserve(5)
same([job.id, job.body], [id, 'text'])
job.touch
job.release(pri: 3, delay: 1000)
same(job.stats.state, 'delayed')
same(job.stats.pri, 3)
same(tube.peek(:delayed).id, id)
same(tube.kick(5)[:id].to_s, '1')
job = beanstalk.tubes.reserve(5)
job.bury(pri: 9)
same(tube.peek(:buried).id, id)
same(tube.stats.current_jobs_buried, 1)
tube.kick(1)
job = beanstalk.tubes.reserve(5)
job.delete
same(job.exists?, false)

begun = Time.now
tube.put('later', delay: 1)
job = beanstalk.tubes.reserve(10)
same(job.body, 'later')
raise 'early' if Time.now - begun < 0.99

job.delete
begin
  beanstalk.tubes.reserve(0)
  raise 'a job that nobody put'
rescue Beaneater::TimedOutError
  same(beanstalk.stats.current_jobs_ready, 0)
end

handled = []
beanstalk.jobs.register('ruby') do |one|
  handled << one.body
  raise Beaneater::AbortProcessingError if handled.size == 3
end
3.times { |n| tube.put(n.to_s) }
begin
  beanstalk.jobs.process!(reserve_timeout: 1)
rescue Beaneater::AbortProcessingError, Beaneater::TimedOutError
  nil
end
same(handled, %w[0 1 2])
tube.clear
same(beanstalk.tubes.all.map(&:name).sort, %w[default ruby])
if ARGV[1] == 'again'
  id = tube.put('kept')[:id]
  puts 'again'
  $stdout.flush
  $stdin.gets
  # The client connects again by itself, and watches and uses the tubes of before.
  same(beanstalk.jobs.find(id.to_i).body, 'kept')
  job = beanstalk.tubes.reserve(5)
  same([job.id, job.body], [id, 'kept'])
  job.delete
  same(tube.put('more')[:status], 'INSERTED')
  same(tube.peek(:ready).body, 'more')
end
beanstalk.close
