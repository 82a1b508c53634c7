DROP INDEX look_backs_crashed_idx;
