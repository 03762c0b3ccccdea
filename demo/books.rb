# SPDX-License-Identifier: GPL-2.0
#
# Clients of the demo, which are beaneater, that knows nothing of twheeld; and what they know of
# each job.

require 'beaneater'
require 'time'

PRODUCERS = 4
CONSUMERS = 8
# Over a crash the server goes by the wall clock, which may be slewed.
SLACK = 0.005
# Seconds without any job until it is given up
PATIENCE = Integer(ENV['PATIENCE'] || 120)

# Ctrl-C ends it without a backtrace; what is begun is ended on the way.
Signal.trap('INT') do
  warn 'demo: interrupted'
  exit 130
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# What is known of each job
class Books
  attr_reader :lateness, :counts, :wrong, :last

  def initialize
    @lock = Mutex.new
    @jobs = {}
    @ticks = {}
    @gone = {}
    @lateness = []
    @counts = Hash.new(0)
    @wrong = Hash.new(0)
    @last = now
  end

  def putting(key, delay)
    @lock.synchronize { @jobs[key] ||= { due: now + delay, put: now, ids: [] } }
  end

  def inserted(key)
    @lock.synchronize do
      @jobs[key][:answered] = now
      @counts[:put] += 1
    end
  end

  def came(key, id)
    at = now
    @lock.synchronize do
      @last = at
      job = @jobs[key] or return @wrong[:unknown] += 1
      @wrong[:early] += 1 if at + SLACK < job[:due]
      @wrong[:twice] += 1 if @gone[id]
      @counts[:again] += 1 if job[:ids].include?(id)
      @lateness << [at - job[:due], 0].max if job[:ids].empty?
      job[:ids] |= [id]
    end
  end

  # A job of the schedule says for which second it is. They come for ever, which says nothing of
  # the others.
  def ticked(time, id)
    at = Time.now.to_f
    @lock.synchronize do
      second = Time.parse(time).to_i
      @wrong[:early] += 1 if at + SLACK < second
      @wrong[:twice] += 1 if @gone[id]
      (@ticks[second] ||= []) << id
    end
  end

  def last_tick
    @lock.synchronize { @ticks.keys.max || 0 }
  end

  # All seconds from one to another have their job, and none has two. The first that came is
  # where it begins: a server may listen before it has begun the schedule.
  def check_ticks(from, to)
    @lock.synchronize do
      @counts[:ticks] = @ticks.size
      from = [from, @ticks.keys.min || from].max
      @wrong[:ticks_lost] += (from..to).count { |second| !@ticks[second] }
      @wrong[:ticks_twice] += @ticks.count { |_, ids| ids.uniq.size > 1 }
    end
  end

  def deleted(id)
    @lock.synchronize { @gone[id] = true }
  end

  def delivered
    @lock.synchronize { @lateness.size }
  end

  # A job has two ids if the client put it again, as a crash had cut off the answer.
  def close(kills, left)
    @jobs.each_value do |job|
      @wrong[:lost] += 1 if job[:answered] && job[:ids].empty?
      next if job[:ids].size < 2

      while_put = (job[:put]..(job[:answered] || now))
      cut_off = kills.any? { |kill| kill.begin <= while_put.end && while_put.begin <= kill.end }
      cut_off ? @counts[:put_again] += 1 : @wrong[:twice] += 1
    end
    @wrong[:left] = left
  end
end

# Something that is done by a client, and gone on with after each crash
def client(server)
  beanstalk = nil
  loop do
    beanstalk ||= Beaneater.new(server.address)
    yield beanstalk
  rescue Beaneater::NotConnected, EOFError, SystemCallError
    beanstalk = nil
    sleep 0.05
  end
ensure
  beanstalk&.close
end

def producer(server, books, keys, seconds)
  random = Random.new(keys.first)
  queue = keys.to_a
  client(server) do |beanstalk|
    key = queue.first or raise StopIteration
    delay = random.rand(1..seconds)
    books.putting(key, delay)
    beanstalk.tubes['demo'].put(key.to_s, delay: delay, ttr: 60)
    books.inserted(key)
    queue.shift
  end
end

def consumer(server, books, stop)
  client(server) do |beanstalk|
    raise StopIteration if stop.call

    beanstalk.tubes.watch!('demo')
    job = beanstalk.tubes.reserve(1)
    if job.body.start_with?('tick ')
      books.ticked(job.body.delete_prefix('tick '), job.id)
    else
      books.came(job.body.to_i, job.id)
    end
    job.delete
    books.deleted(job.id)
  rescue Beaneater::TimedOutError, Beaneater::NotFoundError
    # Nothing was due; or the delete that the crash cut off had been heard.
  end
end

def left(server)
  stats = Beaneater.new(server.address).stats
  %w[urgent ready reserved delayed buried].sum { |state| stats["current_jobs_#{state}"].to_i }
end

STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, Float::INFINITY].freeze

def time(seconds)
  return '  longer' if seconds == Float::INFINITY

  seconds < 1 ? format('%5d ms', seconds * 1000) : format('%5d s ', seconds)
end

def histogram(lateness)
  counts = STEPS.map.with_index do |step, i|
    from = i.zero? ? -1 : STEPS[i - 1]
    lateness.count { |late| late > from && late <= step }
  end
  most = counts.max
  puts 'How late they came'
  STEPS.zip(counts).each do |step, count|
    puts format('  %s  %7d  %s', time(step), count, '#' * (count * 50.0 / most).ceil).rstrip
  end
end

def count(text, number)
  puts format('  %-52s %7d', text, number)
end

def verdict(books, jobs)
  puts 'Counted'
  count('jobs put, and acknowledged', books.counts[:put])
  count('came', books.lateness.size)
  count('came again, as their delete was not acknowledged', books.counts[:again])
  count('put twice by the client, which had no answer', books.counts[:put_again])
  count('seconds of the schedule, each with one job', books.counts[:ticks])
  wrong = books.wrong.select { |_, number| number.positive? }
  wrong[:not_put] = jobs - books.counts[:put] if books.counts[:put] != jobs
  if wrong.empty?
    puts 'none lost, none early, none twice'
  else
    puts "WRONG: #{wrong.map { |what, number| "#{number} #{what}" }.join(', ')}"
  end
  wrong.empty?
end

def wait_for(books, enough)
  until yield >= enough
    return if now - books.last > PATIENCE

    sleep 0.02
  end
end

# All jobs are put and taken out by clients of a server; what is to happen meanwhile is done.
def play(server, jobs, seconds)
  books = Books.new
  done = false
  begun = Time.now.to_i + 1
  threads = (0...PRODUCERS).map do |n|
    Thread.new { producer(server, books, (n...jobs).step(PRODUCERS), seconds) }
  end
  threads += Array.new(CONSUMERS) { Thread.new { consumer(server, books, -> { done }) } }
  yield books
  wait_for(books, jobs) { books.delivered }
  ended = Time.now.to_i
  wait_for(books, ended) { books.last_tick }
  server.pause
  wait_for(books, 0) { -left(server) }
  done = true
  threads.each { |thread| thread.join(PATIENCE) }
  books.check_ticks(begun, ended)
  books.close(server.kills, left(server))
  histogram(books.lateness)
  verdict(books, jobs)
end
