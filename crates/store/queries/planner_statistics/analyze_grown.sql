SELECT analyze_grown() AS name
